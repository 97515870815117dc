"""Pages of the build: caching, compression, headers, and forwarded requests."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.gateway.answering import POLICY
from deepgrid.gateway.pages import accepts_gzip
from tests.gateway.relay_support import BOOK, BUILD, Backend, running

SCRIPT = "/assets/app-a1b2.js"


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Backend]:
    async with running(BOOK, tmp_path, prefect_url="https://prefect.example.org") as backend:
        yield backend


async def test_hashed_names_are_kept_for_a_year_and_the_start_page_is_asked_for_again(web: Backend) -> None:
    start, script = await web.http.get("/"), await web.http.get(SCRIPT)
    assert (start.headers["Cache-Control"], start.content) == ("no-cache", BUILD["index.html"])
    assert start.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "max-age=31536000" in script.headers["Cache-Control"]
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    again = await web.http.get("/", headers={"If-None-Match": start.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await web.http.head("/")
    assert (head.status_code, head.content) == (200, b"")


async def test_compressed_copies_are_served_where_they_are_accepted(web: Backend) -> None:
    plain = await web.http.get(SCRIPT, headers={"Accept-Encoding": "identity"})
    packed = await web.http.get(SCRIPT, headers={"Accept-Encoding": "br, gzip"})
    assert plain.content == packed.content == BUILD[SCRIPT[1:]]
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(gzip.compress(packed.content))
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["ETag"] != packed.headers["ETag"]


@pytest.mark.parametrize(
    ("accepted", "found"),
    [("gzip;q=0", False), ("*", True), ("deflate", False), ("br, GZIP ; q=0.5", True), ("", False)],
)
def test_what_a_client_accepts(accepted: str, found: bool) -> None:
    assert accepts_gzip(accepted) == found


async def test_every_answer_has_the_security_headers(web: Backend) -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types svelte-trusted-html log-search"
    )
    answers = [await web.http.get(path) for path in ("/", SCRIPT, "/v1/grid", "/rpc", "/v1/check")]
    answers.append(await web.http.post("/rpc", json={"method": "eth_chainId"}))
    for answer in answers:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "camera=()" in answer.headers["Permissions-Policy"]
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/assets/../../secret", "/assets", "//etc/passwd", "/index.html.gz", "/v1/health"],
)
async def test_other_paths_are_of_the_services(web: Backend, path: str) -> None:
    answer = await web.http.get(path)
    assert answer.status_code == 404
    assert "handed on" in answer.json()
    assert (await web.http.post("/")).status_code == 404


async def test_without_a_build_one_page_names_the_command(tmp_path: Path) -> None:
    async with running(BOOK, tmp_path, static=tmp_path / "none") as web:
        answer = await web.http.get("/")
        assert answer.status_code == 503
        assert "./run web build" in answer.text
        assert answer.headers["Content-Security-Policy"] == POLICY
        build = tmp_path / "none"
        build.mkdir()
        (build / "index.html").write_text("built now")
        assert (await web.http.get("/")).text == "built now"


async def test_a_new_build_is_noticed(web: Backend, tmp_path: Path) -> None:
    index = tmp_path / "static/index.html"
    index.write_text("another build")
    os.utime(index, ns=(1, 1))
    (tmp_path / "static/build.json").write_text('{"inputs": "def"}')
    assert (await web.http.get("/")).text == "another build"
    assert (await web.http.get("/v1/grid")).json()["build"] == "def"


async def test_the_grid_is_described_without_its_node(web: Backend, tmp_path: Path) -> None:
    found = (await web.http.get("/v1/grid")).json()
    assert (found["chain_id"], found["credit"]) == (5, BOOK.credit)
    assert (found["local"], found["modules"], found["transactions"]) == (False, False, False)
    assert found["prefect_url"] == "https://prefect.example.org"
    assert found["build"] == "abc"
    assert "node_url" not in found
    assert BOOK.rpc_url not in str(found)
    async with running(BOOK, tmp_path, node_url="https://node.example.org", local=True) as local:
        found = (await local.http.get("/v1/grid")).json()
    assert (found["node_url"], found["modules"]) == ("https://node.example.org", True)
