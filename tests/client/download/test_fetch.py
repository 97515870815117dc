"""One file over HTTP: interrupted, changed, damaged."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.client.download.fetch import Fetcher, NotThere, RemoteFile, new_session
from deepgrid.client.download.folder import part_of
from deepgrid.client.settings import ClientSettings
from deepgrid.errors import AccessDenied, ServiceError
from tests.client.download.support import IMPATIENT, MODIFIED, QUICK, FileServer

CONTENT = bytes(range(256)) * 4096  # 1 MB
SECRET = "sig=s3cr3t"
PATH = f"/x?{SECRET}"


def md5_tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


@pytest.fixture(autouse=True)
def content(server: FileServer) -> None:
    server.files[PATH], server.tags[PATH] = CONTENT, md5_tag(CONTENT)


def remote(server: FileServer, *, size: int | None = len(CONTENT), etag: str | None = None) -> RemoteFile:
    tag = md5_tag(CONTENT) if etag is None else etag
    return RemoteFile("x", size, tag, 1_700_000_000, True, lambda: server.url + PATH)


@pytest.fixture
async def fetcher(server: FileServer) -> AsyncIterator[Fetcher]:
    async with new_session(server.url) as session:
        yield Fetcher(session, QUICK)


async def fetch(server: FileServer, file: RemoteFile, place: Path, settings: ClientSettings = QUICK) -> bytes:
    async with new_session(server.url) as session:
        return (await Fetcher(session, settings).fetch(file, place)).read_bytes()


async def test_a_broken_connection_is_continued_where_it_broke(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [300_000, 0, 200_000]
    assert await fetch(server, remote(server), tmp_path / "x") == CONTENT
    offsets = [int(asked.removeprefix("bytes=").rstrip("-") or 0) for _, asked in server.asked]
    assert offsets[0] == 0
    assert offsets == sorted(offsets)
    assert offsets[-1] > 0
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


async def test_the_next_call_continues_an_interrupted_download(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [300_000]
    server.statuses = [0, *[503] * 100]
    file = remote(server)
    with pytest.raises(ServiceError) as caught:
        await fetch(server, file, tmp_path / "x", IMPATIENT)
    assert caught.value.transient
    assert not (tmp_path / "x").exists()
    assert part_of(tmp_path / "x", file.version).stat().st_size > 0
    server.statuses, server.asked = [], []
    assert await fetch(server, file, tmp_path / "x") == CONTENT
    assert server.asked[0][1].startswith("bytes=")
    server.asked = []
    assert await fetch(server, file, tmp_path / "x") == CONTENT
    assert server.asked == []  # it is there already


async def test_a_server_that_cannot_resume_sends_all_again(server: FileServer, tmp_path: Path) -> None:
    server.ranges, server.cuts = False, [300_000]
    assert await fetch(server, remote(server), tmp_path / "x") == CONTENT


async def test_a_part_of_another_version_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    file = remote(server)
    part_of(tmp_path / "x", remote(server, etag='"old"').version).write_bytes(b"old")
    assert await fetch(server, file, tmp_path / "x") == CONTENT


async def test_a_file_that_changes_meanwhile_is_refused(server: FileServer, tmp_path: Path) -> None:
    server.tags[PATH] = '"new"'
    with pytest.raises(ServiceError, match="changed while it was fetched"):
        await fetch(server, remote(server), tmp_path / "x")
    server.files[PATH] += b"more"
    with pytest.raises(ServiceError, match="changed while it was fetched"):
        await fetch(server, remote(server, etag=""), tmp_path / "y")
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "y").exists()


async def test_a_damaged_file_is_fetched_again_and_never_kept(server: FileServer, tmp_path: Path) -> None:
    server.files[PATH] = CONTENT[:-1] + b"?"
    with pytest.raises(ServiceError, match="another checksum") as caught:
        await fetch(server, remote(server), tmp_path / "x", IMPATIENT)
    assert caught.value.transient
    assert list(tmp_path.iterdir()) == []
    server.headers["x-amz-server-side-encryption"] = "aws:kms"  # then the tag is no checksum
    assert await fetch(server, remote(server), tmp_path / "x") == server.files[PATH]


async def test_a_damaged_part_is_noticed(server: FileServer, tmp_path: Path) -> None:
    file = remote(server)
    part_of(tmp_path / "x", file.version).write_bytes(b"?" * 1000)
    assert await fetch(server, file, tmp_path / "x") == CONTENT
    part_of(tmp_path / "y", file.version).write_bytes(b"?" * len(CONTENT))
    assert await fetch(server, file, tmp_path / "y") == CONTENT


async def test_refusals_are_sentences_without_the_address(
    server: FileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for status, kind in ((403, AccessDenied), (404, NotThere), (400, ServiceError), (503, ServiceError)):
        server.statuses = [status] * 100
        with pytest.raises(kind) as caught:
            await fetch(server, remote(server), tmp_path / "x", IMPATIENT)
        assert type(caught.value) is kind
        assert caught.value.transient == (status == 503)
        assert SECRET not in repr(caught.value) + str(caught.value)
        assert caught.value.__cause__ is None
    assert SECRET not in repr(remote(server))
    assert SECRET not in caplog.text
    nowhere = RemoteFile("x", 1, "", 0, True, lambda: f"http://127.0.0.1:1/?{SECRET}")
    with pytest.raises(ServiceError, match="does not answer") as caught:
        await fetch(server, nowhere, tmp_path / "x", IMPATIENT)
    assert SECRET not in str(caught.value)


async def test_an_address_describes_itself_by_one_byte(server: FileServer, fetcher: Fetcher) -> None:
    server.headers["Last-Modified"] = MODIFIED
    found = await fetcher.describe("x", server.url + PATH)
    assert (found.size, found.etag, found.modified_s) == (len(CONTENT), md5_tag(CONTENT), 1767323045)
    assert server.asked == [(PATH, "bytes=0-0")]
    server.ranges = False
    assert (await fetcher.describe("x", server.url + PATH)).size == len(CONTENT)
    server.ranges, server.files["/empty"] = True, b""
    assert (await fetcher.describe("x", f"{server.url}/empty")).size == 0


async def test_an_empty_file_is_a_file(server: FileServer, tmp_path: Path) -> None:
    server.files[PATH], server.tags = b"", {}
    file = RemoteFile("x", 0, "", 0, True, lambda: server.url + PATH)
    assert await fetch(server, file, tmp_path / "x") == b""
