"""Files in a bucket of a real S3 server, and quotas in a real PostgreSQL that two processes of the services share."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.errors import InputError, NotFound, ServiceError
from deepgrid.sbatch.file_addresses import PART_BYTES
from tests.sbatch.bucket import NAME, Bucket
from tests.sbatch.support import Bench
from tests.services.files.private_support import PrivateGrid
from tests.services.files.support import FileGrid, content_of, filled, grid_job
from tests.services.postgres_support import private_postgres
from tests.services.support import Start

CONTENT = {"d/a": b"a secret of the customer", "d/large": os.urandom(PART_BYTES + 7), "d/empty": b""}
MIB = 1024 * 1024


@pytest.fixture
async def in_bucket(start: Start, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileGrid:
    settings = {"ENDPOINT_URL": bucket.url, "ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    for name, value in (settings | {"ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return FileGrid(await start(files=f"s3://{NAME}/grid"), tmp_path / "unused")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with private_postgres() as url:
        yield url


async def test_files_go_through_a_bucket_which_holds_ciphertext_only(
    in_bucket: FileGrid,
    bucket: Bucket,
    bench: Bench,
    tmp_path: Path,
) -> None:
    number = await in_bucket.send(filled(tmp_path / "laptop", CONTENT) / "d")
    definition = grid_job('cp -r "$DEEPSQUARE_INPUT"/. "$DEEPSQUARE_OUTPUT"', {"grid": {"files": number}})
    await in_bucket.claimed(definition)
    done = await in_bucket.run(bench, definition)
    assert done.status == 0, done.output
    await in_bucket.download(tmp_path / "back")
    assert content_of(tmp_path / "back") == CONTENT
    stored = bucket.files()
    assert len(stored) == 2 * 3  # of input and output: the list, and two parts
    assert all(key.startswith("grid/") and "secret" not in key for key in stored)
    assert not [
        key for key, content in stored.items() if CONTENT["d/a"] in content or CONTENT["d/large"][:64] in content
    ]
    await in_bucket.client().delete(1)
    assert len(bucket.files()) == 3
    with pytest.raises(NotFound):
        await in_bucket.names()


async def test_private_files_go_through_a_bucket(
    in_bucket: FileGrid, bucket: Bucket, bench: Bench, tmp_path: Path
) -> None:
    private, secret = PrivateGrid(in_bucket), CONTENT["d/a"]
    command = 'cp -r "$DEEPSQUARE_INPUT"/. "$DEEPSQUARE_OUTPUT"'
    definition = await private.definition(command, filled(tmp_path / "laptop", CONTENT) / "d")
    await private.claimed(definition)
    done = await private.run(bench, definition)
    assert done.status == 0, done.output
    await private.download(tmp_path / "back")
    assert content_of(tmp_path / "back") == CONTENT
    stored = bucket.files()
    assert len(stored) == 2 * 3  # of input and output: the list, and two parts
    assert not [key for key, content in stored.items() if secret in content or b"large" in content or "large" in key]
    await in_bucket.client().delete(1)
    assert len(bucket.files()) == 3


async def test_a_part_that_was_lost_or_changed_in_the_bucket_is_an_error(
    in_bucket: FileGrid,
    bucket: Bucket,
    bench: Bench,
    tmp_path: Path,
) -> None:
    definition = grid_job('echo result >"$DEEPSQUARE_OUTPUT/r"')
    await in_bucket.claimed(definition)
    assert (await in_bucket.run(bench, definition)).status == 0
    [part] = [key for key in bucket.files() if not key.endswith("manifest")]
    bucket.put(part, bucket.files()[part][:-1] + b"x")
    with pytest.raises(ServiceError):
        await in_bucket.download(tmp_path / "back")
    bucket.empty()
    with pytest.raises(ServiceError):
        await in_bucket.download(tmp_path / "back")
    assert not (tmp_path / "back/r").exists()


async def test_fifty_uploads_at_two_processes_share_one_quota(start: Start, postgres: str, tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text('{"quota_gib": 1, "all_gib": 2}')
    settings = {"database_url": postgres, "files": str(tmp_path / "files"), "files_terms": tmp_path / "terms.json"}
    one = await start(**settings)
    both = [FileGrid(grid, tmp_path / "files") for grid in (one, await start(one.chain, **settings))]
    asked = [both[n % 2].client().announce(hashlib.sha256(bytes([n])).hexdigest(), 300 * MIB, 1) for n in range(50)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    kinds = Counter(type(one).__name__ for one in results)
    assert kinds == {"Announced": 3, "InputError": 47}, kinds
    assert [(await grid.client().usage()).used for grid in both] == [900 * MIB] * 2
    for size, error in ((1024 * MIB, None), (400 * MIB, InputError)):  # of another customer, then above its quota
        announced = both[0].client("rival").announce(hashlib.sha256(b"%d" % size).hexdigest(), size, 1)
        if error is None:
            await announced
            continue
        with pytest.raises(error):
            await announced
