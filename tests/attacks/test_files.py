"""Strangers, other customers, jobs and operators at the files that the grid keeps."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from deepgrid.client.files.local_files import scan
from deepgrid.client.files.receiving import KeptFiles
from deepgrid.errors import AccessDenied, GridError, InputError, NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.services.client import FilesClient
from deepgrid.services.files.bundles import MOST_LINKS
from deepgrid.services.files.manifest import Manifest
from deepgrid.services.files.old_bundles import clean_up_files
from tests.sbatch.support import Bench
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.files.conftest import bench, files  # noqa: F401 - fixtures
from tests.services.files.support import FileGrid, filled, get, grid_job, put
from tests.services.support import client_of, session_key
from tests.waiting import until

CUSTOMER, JOB, STRANGER, PAGE = "another customer", "a job", "an attacker on the network", "a web page"
SECRET = b"the secret of the customer"


async def finished(grid: FileGrid, bench: Bench, job_id: int = 1) -> None:  # noqa: F811
    """Run a job that leaves a secret, and end it."""
    definition = grid_job(
        'cp "$DEEPSQUARE_INPUT/secret" "$DEEPSQUARE_OUTPUT/secret"', {"grid": {"files": await sent(grid, bench)}}
    )
    await grid.claimed(definition, job_id)
    assert (await grid.run(bench, definition, job_id)).status == 0


async def sent(grid: FileGrid, bench: Bench) -> str:  # noqa: F811
    folder = filled(bench.root / "laptop", {"secret": SECRET})
    return await grid.send(folder / "secret")


def entry(path: str, size: int = 1) -> bytes:
    return b"%d 644 %s  %s\0" % (size, b"a" * 64, path.encode("utf-8", "surrogatepass"))


@pytest.mark.attack(
    "asks for another customer's files by the job's number, the files' number and their hash, and guesses a link",
    attacker=CUSTOMER, gain="the files' existence only to those who have all of them",
    defence="only the chain's customer of a job gets addresses; each address is an HMAC of the service",
)  # fmt: skip
async def test_files_of_another_customer(files: FileGrid, bench: Bench, tmp_path: Path) -> None:  # noqa: F811
    await finished(files, bench)
    rival = files.client("rival")
    for ask in (rival.of_job(1), rival.share(1, 3600), rival.delete(1), rival.links(1), rival.revoke_links(1)):
        with pytest.raises(NotFound):
            await ask
    number = await sent(files, bench)
    for source in ({"grid": {"files": number}}, {"job": 1}):
        with pytest.raises(InputError, match="that you have sent|not a job of yours"):
            await files.services.rival.upload(grid_job(":", source))
    same = scan([tmp_path / "bench/laptop/secret"]).manifest
    mine = await rival.announce(same.digest, same.size, 1)  # a copy of the same files gives nothing of the first
    assert (mine.finished, mine.id == number) == (False, False)
    address = files.client().url((await files.client().of_job(1)).address)
    until = int(address.rsplit(".", 2)[1])
    for forged in (
        address[:-1] + "-",
        address.replace(f".{until}.", f".{until + 1}."),
        address.replace("/get.", "/in."),
    ):
        assert (await get(forged + "/data")).status_code == 404
    assert (await get(address + "/data")).content == SECRET


@pytest.mark.attack(
    "sends lists of files with deceiving paths: `../`, absolute, NUL, 10,000 folders, a file that is a folder too",
    attacker=JOB, gain="a refusal", defence="a list has regular files at relative paths, and is checked as a whole",
)  # fmt: skip
async def test_deceiving_paths(files: FileGrid, tmp_path: Path) -> None:  # noqa: F811
    await files.claimed(grid_job(":"))
    address = (await files.addresses()).output
    deep = "/".join(["d"] * 10_000)
    bad = ["../x", "/etc/passwd", "a/../../x", "a//b", "a/", ".", "./..", "", deep, "n" * 256]
    lists = [*map(entry, bad), entry("a") + entry("a/b"), entry("a") + entry("a"), entry("a")[:-1], b"x\0", b"\0"]
    lists += [b"99999999999999999 644 " + b"a" * 64 + b"  x\0", b"-1 644 " + b"a" * 64 + b"  x\0"]
    for text in lists:
        assert (await put(address + "/manifest", text)).status_code in (413, 422), text[:60]
    for name in ("con\ntrol", "\x1b[31mred", "C:\\x", "caf\u00e9"):  # they are names, and stay in their folder
        assert (await put(address + "/manifest", entry(name, 0))).status_code == 204
        assert (await put(address + "/finish", b"")).status_code == 204


@pytest.mark.attack(
    "puts links, devices and pipes into the output, to reach files of the node or to hang the sender",
    attacker=JOB, gain="its own files only", defence="only regular files are listed; links outside become copies",
)  # fmt: skip
async def test_links_and_devices(files: FileGrid, bench: Bench) -> None:  # noqa: F811
    command = (
        'cd "$DEEPSQUARE_OUTPUT"; ln -s /dev/zero zero; ln -s / root; ln -s . loop; ln -s nowhere none; mkfifo pipe;'
        " ln -s /etc/hostname host; echo good >good"
    )
    definition = grid_job(command)
    await files.claimed(definition)
    await files.run(bench, definition)
    assert set(await files.names()) <= {"good", "host"}


@pytest.mark.attack(
    "makes a malicious service send a list with deceiving paths to the customer's machine",
    attacker="a malicious operator", gain="an error", defence="the client checks the list like the service does",
)  # fmt: skip
async def test_deceiving_lists_at_the_client(tmp_path: Path) -> None:
    for text in (entry("../x"), entry("/x"), entry("a/../../x"), entry("a") + entry("a/b")):
        with pytest.raises(InputError):
            Manifest.parse(text)
    kept = KeptFiles(None, None)  # type: ignore[arg-type]
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "a").symlink_to(tmp_path)
    with pytest.raises(GridError):
        await kept.fetch(Manifest.parse(entry("a/b")), tmp_path / "to", lambda _: True)
    assert not (tmp_path / "b").exists()


@pytest.mark.attack(
    "announces one upload 50 times at once, to exceed the quota", attacker="a customer", gain="the quota",
    defence="room is reserved in one transaction at a time, before any byte is taken",
)  # fmt: skip
async def test_a_quota_raced_by_50_uploads(files: FileGrid, tmp_path: Path) -> None:  # noqa: F811
    terms = tmp_path / "terms.json"
    terms.write_text('{"quota_gib": 1}')
    assert files.services.context.files is not None
    files.services.context.files.policy._path = terms
    client = files.client()
    asked = [client.announce(hashlib.sha256(bytes([n])).hexdigest(), 300 * 1024**2, 1) for n in range(50)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in results) == 3
    assert {type(one) for one in results if isinstance(one, Exception)} == {InputError}
    assert (await client.usage()).used <= (await client.usage()).quota


@pytest.mark.attack(
    "uploads without an end: more bytes than announced, parts that do not exist, one part after another for days",
    attacker="a customer", gain="its reserved room, which counts for its quota",
    defence="each part's size follows from the list; an upload that gets no more parts is deleted after its time",
)  # fmt: skip
async def test_an_upload_that_never_ends(files: FileGrid, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "terms.json").write_text('{"unfinished_hours": 1}')
    assert files.services.context.files is not None
    files.services.context.files.policy._path = tmp_path / "terms.json"
    client = files.client()
    text = entry("x", PART_BYTES + 10)
    said = await client.announce(hashlib.sha256(text).hexdigest(), PART_BYTES + 10, 1)
    address = client.url(said.address)
    assert (await put(address + "/parts/0", b"x")).status_code == 422
    assert (await put(address + "/manifest", text)).status_code == 204
    statuses = [(await put(f"{address}/parts/{n}", bytes(size))).status_code for n, size in ((1, 11), (1, 9), (2, 1))]
    assert statuses == [413, 422, 409]
    assert (await put(address + "/finish", b"")).status_code == 409
    assert (await put(address + "/parts/1", bytes(10))).status_code == 204
    room = files.services.context.files
    assert room is not None
    for _ in range(2):  # an upload that continues is not deleted, whenever it began
        files.services.clock.ahead_s += 2400
        await clean_up_files(room)
        assert await files.content_bytes() == PART_BYTES + 10
        assert (await put(address + "/parts/1", bytes(10))).status_code == 204
    files.services.clock.ahead_s += 2 * 3600
    await clean_up_files(room)
    assert (await client.usage()).used == 0
    assert not [path for path in files.store.rglob("*") if path.is_file()]


@pytest.mark.attack(
    "uses its addresses after its end, another claim's addresses, or an input's address to write",
    attacker=JOB, gain="a refusal", defence="an address names its use and its claim, which must be open on chain",
)  # fmt: skip
async def test_addresses_after_the_end(files: FileGrid, bench: Bench) -> None:  # noqa: F811
    await files.claimed(grid_job(":", {"grid": {"files": await sent(files, bench)}}))
    addresses = await files.addresses()
    assert (await get(addresses.input + "/data")).content == SECRET
    assert (await put(addresses.input + "/manifest", b"")).status_code == 403
    assert (await get(addresses.output + "/data")).status_code == 403
    job = files.services.chain.jobs_by_id[1]
    files.services.clock.ahead_s += 10
    files.services.chain.put(1, job.definition.definition_hash, JobStatus.FINISHED)
    assert (await get(addresses.input + "/data")).status_code == 403
    assert (await put(addresses.output + "/manifest", b"")).status_code == 403
    files.services.clock.ahead_s += 10
    files.services.chain.put(1, job.definition.definition_hash, JobStatus.RUNNING, claimed_at=9)
    assert (await get(addresses.input + "/data")).status_code == 403
    for name in ("other_provider", "customer", "rival"):
        with pytest.raises(GridError):
            await files.client(name).transfers(1)


@pytest.mark.attack(
    "a stolen session key that may only read makes or revokes links, or one that may store deletes files",
    attacker=PAGE, gain="what that key reads by itself", defence="links need the right `store`, deletion the wallet",
)  # fmt: skip
async def test_links_by_a_session_key(files: FileGrid, bench: Bench) -> None:  # noqa: F811
    await finished(files, bench)
    async with client_of(files.services.url, session_key(rights="read")) as thief:
        reader = FilesClient(thief)
        address = (await reader.of_job(1)).address
        assert (await get(reader.url(address) + "/file?path=secret")).content == SECRET
        for ask in (reader.share(1, 3600), reader.revoke_links(1), reader.delete(1)):
            with pytest.raises(AccessDenied):
                await ask
    async with client_of(files.services.url, session_key()) as page:
        owner = FilesClient(page)
        link = owner.url((await owner.share(1, 3600)).address or "")
        assert (await get(link + "/file?path=secret")).content == SECRET
        with pytest.raises(AccessDenied):
            await owner.delete(1)
        await owner.revoke_links(1)
        assert (await get(link + "/data")).status_code == 404


@pytest.mark.attack(
    "reads by a link that was revoked, has ended, or whose files were deleted", attacker=STRANGER, gain="a refusal",
    defence="links are looked up at each use",
)  # fmt: skip
async def test_links_that_are_no_longer_good(files: FileGrid, bench: Bench) -> None:  # noqa: F811
    await finished(files, bench)
    client = files.client()
    first, second = [client.url((await client.share(1, 3600)).address or "") for _ in range(2)]
    assert (await get(first + "/data")).content == SECRET
    answer = await get(first + "/file?path=secret")
    assert answer.headers["content-security-policy"].endswith("sandbox")
    assert answer.headers["content-disposition"].startswith("attachment")
    await client.revoke_links(1)
    assert [(await get(one + "/data")).status_code for one in (first, second)] == [404, 404]
    for _ in range(MOST_LINKS - 1):  # a revoked link counts no more
        await client.share(1, 60)
    third = client.url((await client.share(1, 3600)).address or "")
    files.services.clock.ahead_s += 3601
    assert (await get(third + "/data")).status_code == 404


@pytest.mark.attack(
    "steals the disk of the operator, or changes and exchanges files on it", attacker="a thief of a disk",
    gain="sizes and times; a changed file is an error",
    defence="each part is encrypted, and its place is authenticated; the key is in the secret file",
)  # fmt: skip
async def test_the_operators_disk(files: FileGrid, bench: Bench) -> None:  # noqa: F811
    await finished(files, bench)
    stored = [path for path in files.store.rglob("*") if path.is_file()]
    database = (files.services.settings.secret_file.parent / "services.sqlite").read_bytes()
    for content in (*(path.read_bytes() for path in stored), database):
        assert SECRET not in content
        assert b"secret" not in content.replace(b"secret_", b"")
    parts = [path for path in stored if path.name != "manifest"]
    contents = [path.read_bytes() for path in parts]
    for path, content in zip(parts, reversed(contents), strict=True):
        path.write_bytes(content)
    address = files.client().url((await files.client().of_job(1)).address)
    with pytest.raises(httpx.HTTPError):
        await get(address + "/data")


@pytest.mark.attack(
    "deletes its files while parts of them are in transit, again and again, to fill the store beyond its quota",
    attacker="a customer", gain="nothing: what arrives late is deleted",
    defence="after a part is stored, its list must still be the one that counts",
)  # fmt: skip
async def test_parts_that_arrive_after_their_files_were_deleted(files: FileGrid) -> None:  # noqa: F811
    await files.claimed(grid_job(":"))
    address = (await files.addresses()).output
    assert (await put(address + "/manifest", entry("x", 2 * PART_BYTES))).status_code == 204
    assert (await put(address + "/parts/0", bytes(PART_BYTES))).status_code == 204
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield bytes(PART_BYTES - 1)
        begun.set()
        await go_on.wait()
        yield b"x"

    async with httpx.AsyncClient(timeout=60) as client:
        sending = asyncio.create_task(client.put(address + "/parts/1", content=slowly()))
        await begun.wait()
        room = files.services.context.files
        assert room is not None
        await until(lambda: room.received.lent == 1)
        assert await room.delete_of(files.services.chain.jobs_by_id[1]) == 1
        go_on.set()
        assert (await sending).status_code == 409
    assert not [path for path in files.store.rglob("*") if path.is_file()]
    assert (await files.client().usage()).used == 0
    assert (await put(address + "/parts/0", bytes(PART_BYTES))).status_code == 409
