"""Operators, clusters and customers at private files, which only their customer and the named clusters may read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.client.files import KeptFiles, scan
from deepgrid.client.files.sealed_files import SealedExchange, SealedFiles
from deepgrid.errors import AccessDenied, InputError
from deepgrid.lifecycle.job import Job
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.sbatch.sealed_stream import CHUNK, HEADER_BYTES, NAME, SEALED_CHUNK
from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.files.private_keys import FileKeys, public_key_of
from deepgrid.workflow.canonical import canonical
from deepgrid.workflow.models import GridData, TransportData
from tests.sbatch.support import Bench
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.files.conftest import bench, files  # noqa: F401 - fixtures
from tests.services.files.private_support import WALLETS, PrivateGrid, cluster_of
from tests.services.files.support import IMPATIENT, FileGrid, content_of, filled, get, grid_job
from tests.services.support import DOMAIN

OPERATOR, CLUSTER, CUSTOMER = "a malicious operator", "another provider", "another customer"
FILE, SECRET = "merger-with-acme.txt", b"the secret of the customer "
COPY = f'cp "$DEEPSQUARE_INPUT"/* "$DEEPSQUARE_OUTPUT"; test -s "$DEEPSQUARE_INPUT/{FILE}"'


class Altered:
    """An exchange that gives these bytes as the job's only file."""

    def __init__(self, content: bytes, name: str = NAME) -> None:
        self._content, self._list = content, Manifest.of([FileEntry(name, len(content), 0o600, "0" * 64)]).text

    async def read(self, what: str, most_bytes: int) -> bytes:
        return self._list

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:  # noqa: F811
        yield self._content[start:end]


@pytest.fixture
def private(files: FileGrid) -> PrivateGrid:  # noqa: F811
    return PrivateGrid(files)


async def finished(private: PrivateGrid, bench: Bench, size: int = 1, job_id: int = 1) -> bytes:  # noqa: F811
    """Run a job with a private file, and return its output as the grid has it."""
    folder = filled(bench.root / "laptop", {FILE: SECRET * size})
    definition = await private.definition(COPY, folder / FILE)
    await private.claimed(definition, job_id)
    done = await private.run(bench, definition, job_id)
    assert done.status == 0, done.output
    return (await get(await address(private, job_id) + "/data")).content


async def address(private: PrivateGrid, job_id: int = 1) -> str:
    client = private.files.client()
    return client.url((await client.of_job(job_id)).address)


async def fetched(content: bytes, job: Job, to: Path, name: str = NAME) -> list[Path]:
    exchange = SealedExchange(Altered(content, name), WALLETS["customer"], DOMAIN, job)  # type: ignore[arg-type]
    kept = KeptFiles(exchange, IMPATIENT)
    return await kept.fetch(await kept.manifest(), to, lambda _: True)


@pytest.mark.attack(
    "reads private files: the store, the definition, the script's log, and all that the services answer",
    attacker=OPERATOR, gain="their sizes together, and when they were used",
    defence="files, names and lists are encrypted on the customer's machine and at the job; the log lists no names",
)  # fmt: skip
async def test_the_operators_disk_has_ciphertext(private: PrivateGrid, bench: Bench) -> None:  # noqa: F811
    folder = filled(bench.root / "laptop", {FILE: SECRET * 10_000})
    odd = f'; ln -s / "$DEEPSQUARE_OUTPUT/{FILE}.link"; mkfifo "$DEEPSQUARE_OUTPUT/{FILE}.pipe"'
    definition = await private.definition(COPY + odd, folder / FILE)
    job = await private.claimed(definition)
    done = await private.run(bench, definition)
    assert "left out" in done.output, done.output
    incoming = (await private.files.addresses()).input
    base = await address(private)
    seen = [canonical(definition), done.output.encode()]
    seen += [(await get(url + what)).content for url in (base, incoming) for what in ("/data", "/manifest", "/tar")]
    disk = [path for path in private.files.store.parent.rglob("*") if path.is_file() and bench.root not in path.parents]
    seen += [path.read_bytes() for path in disk] + [str(path).encode() for path in disk]
    assert len(disk) > 4
    keys = private.secrets(definition, job)
    for hidden in (SECRET, bytes.fromhex(keys["input_key"]), keys["input_key"].encode(), keys["output_key"].encode()):
        assert not any(hidden in one for one in seen)
    assert not any(FILE.encode() in one for one in seen[1:]), "only the command of the definition names it"


@pytest.mark.attack(
    "changes, cuts, reorders or extends the private output of a job, or replaces it with another output",
    attacker=OPERATOR, gain="an error at the customer",
    defence="each chunk is bound to its place and to the end; the key follows from the job and its claim",
)  # fmt: skip
async def test_altered_output_is_refused(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    content = await finished(private, bench, 3 * CHUNK // len(SECRET))
    job = private.job()
    (good,) = await fetched(content, job, tmp_path / "good")
    assert good.read_bytes().startswith(SECRET)
    chunks = [content[at : at + SEALED_CHUNK] for at in range(HEADER_BYTES, len(content), SEALED_CHUNK)]
    head = content[:HEADER_BYTES]
    altered = [
        content[:-1],
        head + b"".join(chunks[:-1]),  # the end is missing
        head + b"".join([chunks[0], chunks[2], chunks[1], *chunks[3:]]),
        head + b"".join([*chunks, chunks[-1]]),
        head + b"".join([*chunks[:-1], chunks[0], chunks[-1]]),
        content + b"x",
        head[:-1] + bytes([head[-1] ^ 1]) + content[HEADER_BYTES:],
        b"x" + content[1:],
        content[:30] + bytes([content[30] ^ 1]) + content[31:],
        content[: HEADER_BYTES + 10],
        content[:50],
        b"",
    ]
    altered += [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in (HEADER_BYTES, -1 % len(content))]
    for number, one in enumerate(altered):
        with pytest.raises(AccessDenied):
            await fetched(one, job, tmp_path / f"bad-{number}")
        assert not content_of(tmp_path / f"bad-{number}"), number
    for other in (replace(job, id=2), replace(job, claimed_at=job.claimed_at + 1)):
        with pytest.raises(AccessDenied):
            await fetched(content, other, tmp_path / "other")


@pytest.mark.attack(
    "gives the customer files in clear text that the job did not leave, in place of its private ones",
    attacker=OPERATOR, gain="an error at the customer", defence="the chain says that the job's files are private",
)  # fmt: skip
async def test_clear_text_is_refused(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    await finished(private, bench)
    for name in ("results.txt", NAME):
        with pytest.raises(AccessDenied):
            await fetched(b"forged" * 100, private.job(), tmp_path / "forged", name)
    own = os.urandom(60)  # a key that the operator made
    forged = SealedFiles(scan([filled(tmp_path, {"f": b"forged"}) / "f"]), FileKeys(os.urandom(32), own, ""))
    content = bytearray(forged.manifest.size)
    forged.read_into(memoryview(content), 0)
    with pytest.raises(AccessDenied, match="another wallet, or were changed"):
        await fetched(bytes(content), private.job(), tmp_path / "forged")


@pytest.mark.attack(
    "changes, cuts or exchanges the private input that a job gets",
    attacker=OPERATOR, gain="a job that fails before its first step",
    defence="the script decrypts all of it first, and the key is new for each set of files",
)  # fmt: skip
async def test_altered_input_is_refused(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    sealed = SealedFiles(scan([filled(tmp_path, {FILE: SECRET * 5000}) / FILE]), private.keys)
    content = bytearray(sealed.manifest.size)
    sealed.read_into(memoryview(content), 0)
    other = SealedFiles(scan([tmp_path / FILE]), FileKeys.new(WALLETS["customer"], DOMAIN))
    foreign = bytearray(other.manifest.size)
    other.read_into(memoryview(foreign), 0)
    definition = await private.definition("echo the step runs")
    for job_id, bad in enumerate([content[:-SEALED_CHUNK], content[:-1] + b"\0", foreign, SECRET, b""], 1):
        number = await private.files.send(filled(tmp_path / str(job_id), {NAME: bytes(bad)}) / NAME)
        given = definition.model_copy(update={"input": TransportData(grid=GridData(files=number))})
        await private.claimed(given, job_id)
        done = await private.run(bench, given, job_id)
        assert done.status != 0
        assert "the private input was changed" in done.output
        assert "the step runs" not in done.output


@pytest.mark.attack(
    "is given the definition of a job with private files that were not encrypted for it",
    attacker=CLUSTER, gain="a refusal", defence="the key is encrypted for the accounts of the named clusters",
)  # fmt: skip
async def test_another_cluster_cannot_decrypt(private: PrivateGrid) -> None:
    definition = await private.definition("true", clusters=[cluster_of(), cluster_of("operator")])
    job = await private.claimed(definition)
    assert private.secrets(definition, job, "operator") == private.secrets(definition, job)
    with pytest.raises(InputError, match="not encrypted for this cluster"):
        private.secrets(definition, job, "other_provider")
    sealed = definition.private_files
    assert sealed
    renamed = [one.model_copy(update={"cluster": WALLETS["other_provider"].address}) for one in sealed.clusters]
    stolen = sealed.model_copy(update={"clusters": tuple(renamed)})
    with pytest.raises(InputError, match="not encrypted for this cluster"):
        private.secrets(definition.model_copy(update={"private_files": stolen}), job, "other_provider")


@pytest.mark.attack(
    "replaces another cluster's public key with its own, as a label",
    attacker=OPERATOR, gain="nothing", defence="the hash of the key must be the address of the cluster's account",
)  # fmt: skip
async def test_a_forged_public_key(private: PrivateGrid) -> None:
    forged = cluster_of("provider", WALLETS["operator"].public_key)
    assert public_key_of(forged) is None
    assert [one.cluster for one in private.keys.sealed_for([forged, cluster_of()]).clusters] == [cluster_of().address]
    assert private.keys.sealed_for([forged]).clusters == ()


@pytest.mark.attack(
    "names the sealed key and the private files of a customer in a job of its own, at a cluster that can decrypt them",
    attacker=CUSTOMER, gain="a job that fails", defence="the keys of files follow from the job's customer, too",
)  # fmt: skip
async def test_a_stolen_sealed_key(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    sent = filled(tmp_path, {FILE: SECRET})
    definition = await private.definition(f'cat "$DEEPSQUARE_INPUT/{FILE}"', sent / FILE)
    job = await private.claimed(definition)
    thief = replace(job, customer=WALLETS["rival"].address)
    stolen = private.secrets(definition, thief)
    assert not set(stolen.values()) & set(private.secrets(definition, job).values()) - {stolen["own_key"]}
    found = await private.files.addresses()  # a malicious operator gives the thief's job the files, too
    bench.grid_files = GridFiles(found.input, found.output, **stolen)
    done = await asyncio.to_thread(bench.run, definition)
    assert done.status != 0
    assert SECRET.decode() not in done.output
    await finished(private, bench, job_id=2)
    with pytest.raises(AccessDenied, match="another wallet"):
        async with private.kept(2, WALLETS["rival"]) as kept:
            await kept.manifest()


@pytest.mark.attack(
    "shares the private files of a job by a link, or lets them be the input of a job that is not private",
    attacker="a thief of a session key", gain="a refusal", defence="the services see on chain that they are private",
)  # fmt: skip
async def test_private_files_are_not_shared(private: PrivateGrid, bench: Bench) -> None:  # noqa: F811
    await finished(private, bench)
    with pytest.raises(InputError, match="private, so no link"):
        await private.files.client().share(1, 3600)
    with pytest.raises(InputError, match="are private; download them"):
        await private.files.services.customer.upload(grid_job("true", {"job": 1}))


@pytest.mark.attack(
    "reads the keys of private files from the arguments and variables of programs",
    attacker="another user of the cluster", gain="nothing", defence="the script gives keys to programs through pipes",
)  # fmt: skip
async def test_keys_are_no_arguments(private: PrivateGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    log = bench.root / "calls"
    for program in ("python3", "curl", "cat", "sha256sum"):
        wrapper = bench.root / "bin" / program
        line = f'#!/bin/bash\n{{ tr "\\0" "\\n" </proc/$$/cmdline; env; }} >>{log}\nexec /usr/bin/{program} "$@"\n'
        wrapper.write_text(line)
        wrapper.chmod(0o755)
    definition = await private.definition(COPY, filled(tmp_path, {FILE: SECRET}) / FILE)
    job = await private.claimed(definition)
    assert (await private.run(bench, definition)).status == 0
    seen, keys = log.read_text(), private.secrets(definition, job)
    assert "unseal" in seen
    assert keys["input_key"] not in seen
    assert keys["output_key"] not in seen
