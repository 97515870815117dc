"""Private files: from a folder of a customer to the output of a job, with a real script on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepgrid.client.files.local_files import scan
from deepgrid.client.files.sealed_files import SealedFiles
from deepgrid.errors import InputError
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.sbatch.sealed_stream import CHUNK
from deepgrid.services.files.private_keys import FileKeys, public_key_of
from tests.sbatch.support import Bench, lint
from tests.services.files.private_support import WALLETS, PrivateGrid, cluster_of
from tests.services.files.support import FileGrid, content_of, filled
from tests.services.support import DOMAIN

COPY = 'cp -r "$DEEPSQUARE_INPUT"/. "$DEEPSQUARE_OUTPUT"'
FILES = {
    "data/a.txt": b"one\n",
    "data/deep/er/b c.bin": bytes(range(256)) * 40,
    "data/empty": b"",
    "data/line\nend \\ \u20ac": b"odd name",
    "data/large": os.urandom(PART_BYTES + 12345),
}


@pytest.fixture
def private(files: FileGrid) -> PrivateGrid:
    return PrivateGrid(files)


async def test_a_folder_goes_to_a_job_and_its_results_come_back(
    private: PrivateGrid, bench: Bench, tmp_path: Path
) -> None:
    sent = filled(tmp_path / "laptop", FILES)
    (sent / "data/a.txt").chmod(0o755)
    command = COPY + '; test -x "$DEEPSQUARE_INPUT/data/a.txt"; ls -l "$DEEPSQUARE_INPUT/data" >&2'
    definition = await private.definition(command, sent / "data")
    await private.claimed(definition)
    done = await private.run(bench, definition)
    assert done.status == 0, done.output
    await private.download(tmp_path / "back")
    assert content_of(tmp_path / "back") == {
        name.replace("\n", "%0A").replace("\\", "%5C"): content for name, content in content_of(sent).items()
    }
    assert os.access(tmp_path / "back/data/a.txt", os.X_OK)


async def test_one_file_is_fetched_alone(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:
    sent = filled(tmp_path / "laptop", FILES)
    definition = await private.definition(COPY, sent / "data")
    await private.claimed(definition)
    assert (await private.run(bench, definition)).status == 0
    async with private.kept() as kept:
        await kept.fetch(await kept.manifest(), tmp_path / "one", lambda path: path == "data/large")
    assert content_of(tmp_path / "one") == {"data/large": FILES["data/large"]}


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, PART_BYTES, PART_BYTES * 2 + 7])
async def test_files_of_any_size_arrive(size: int, private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:
    content = os.urandom(size)
    filled(tmp_path / "laptop", {"f": content})
    definition = await private.definition(COPY, tmp_path / "laptop/f")
    await private.claimed(definition)
    done = await private.run(bench, definition)
    assert done.status == 0, done.output
    await private.download(tmp_path / "back")
    assert content_of(tmp_path / "back") == {"f": content}


async def test_a_job_without_input_and_without_output(private: PrivateGrid, bench: Bench) -> None:
    definition = await private.definition("echo done")
    await private.claimed(definition)
    done = await private.run(bench, definition)
    assert done.status == 0, done.output
    async with private.kept() as kept:
        assert (await kept.manifest()).entries == []


async def test_a_failed_job_leaves_its_output(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:
    definition = await private.definition('echo part >"$DEEPSQUARE_OUTPUT/part"; exit 3')
    await private.claimed(definition)
    assert (await private.run(bench, definition)).status == 3
    await private.download(tmp_path / "back")
    assert content_of(tmp_path / "back") == {"part": b"part\n"}


def test_a_file_that_changes_while_it_is_sent_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a" * 100_000)
    keys = FileKeys.new(WALLETS["customer"], DOMAIN)
    sealed = SealedFiles(scan([file]), keys)
    size = sealed.manifest.size
    whole, again = bytearray(size), bytearray(size)
    sealed.read_into(memoryview(whole), 0)
    sealed.read_into(memoryview(again), 0)
    assert whole == again
    file.write_bytes(b"b" * 100_000)
    with pytest.raises(InputError, match="changed while it was sent"):
        sealed.read_into(memoryview(again), 0)
    assert not any(again), "nothing that has the same nonce leaves"


def test_the_same_files_are_encrypted_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a" * 1000)
    keys = FileKeys.new(WALLETS["customer"], DOMAIN)
    first, second = (SealedFiles(scan([file]), keys).manifest.digest for _ in range(2))
    assert first != second


def test_a_public_key_is_of_the_clusters_own_account() -> None:
    assert public_key_of(cluster_of()) == WALLETS["provider"].public_key
    foreign = cluster_of("provider", WALLETS["operator"].public_key)
    assert public_key_of(foreign) is None
    for odd in (b"", b"\x00", b"\x02" + b"\xff" * 32, b"\x04" + b"\x01" * 64):
        assert public_key_of(cluster_of("provider", odd or None)) in (None, WALLETS["provider"].public_key)
    keys = FileKeys.new(WALLETS["customer"], DOMAIN)
    assert [one.cluster for one in keys.sealed_for([cluster_of("rival"), foreign]).clusters] == [
        WALLETS["rival"].address
    ]


async def test_the_script_has_no_faults(private: PrivateGrid) -> None:
    lint(await private.definition(COPY))
