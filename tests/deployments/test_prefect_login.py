"""`dps provider doctor` detects an open Prefect API. The attacks test a real server with a login."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deepgrid.findings import Level
from deployments.cli.serving import examine_prefect


@contextmanager
def answering(status: int) -> Iterator[tuple[str, list[str]]]:
    """Yield an API that answers every request with `status`, and the list of its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization')}")
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"1")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "level", "words"),
    [
        (200, Level.BAD, "is open"),
        (401, Level.GOOD, "refuses"),
        (403, Level.GOOD, "refuses"),
        (302, Level.GOOD, "refuses"),
        (502, Level.WARNING, "unknown"),
    ],
)
async def test_what_an_answer_means(status: int, level: Level, words: str) -> None:
    with answering(status) as (host, _):
        finding = await examine_prefect(f"http://{host}/api")
    assert finding.level is level
    assert words in finding.words and host in finding.words
    assert (level is Level.GOOD) == (finding.next_step == "")


async def test_it_asks_without_the_login_that_the_url_holds_and_never_shows_it() -> None:
    with answering(200) as (host, asked):
        finding = await examine_prefect(f"http://deepgrid:hidden@{host}/api/")
    assert asked == ["/api/flows/count None"]
    assert "PREFECT_SERVER_API_AUTH_STRING" in finding.next_step
    assert "hidden" not in finding.words


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/api", ""])
async def test_a_server_that_does_not_answer_is_a_warning(url: str) -> None:
    assert (await examine_prefect(url)).level is Level.WARNING
