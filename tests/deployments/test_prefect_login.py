"""`dps provider doctor` detects an open Prefect API and slow diagrams. The attacks test a real server with a login."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import UUID

import prefect
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from deepgrid.findings import Level
from deployments.cli.serving import examine_diagrams, examine_prefect

RUN = {"id": str(UUID(int=1)), "flow_id": str(UUID(int=2)), "name": "job 1 on alpha"}


@contextmanager
def answering(status: int, runs: object = 1, pause_s: float = 0.0) -> Iterator[tuple[str, list[str]]]:
    """Yield an API that answers every request with `status`, and the list of its requests.

    With `runs`, it answers POST with them, and requests for a diagram with `status` after `pause_s`.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization')}")
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if runs != 1 else status)
            self.end_headers()
            self.wfile.write(json.dumps(runs).encode())

        def do_GET(self) -> None:
            is_diagram = self.path.endswith("graph-v2")
            time.sleep(pause_s if is_diagram else 0)
            self.send_response(status if is_diagram else 404 if "csrf" in self.path else 200)
            self.end_headers()
            self.wfile.write(json.dumps(prefect.__version__).encode())

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


@pytest.mark.parametrize(
    ("runs", "status", "pause_s", "level", "words"),
    [
        ([], 200, 0.0, Level.GOOD, "no run yet"),
        ([RUN], 200, 0.0, Level.GOOD, "makes the diagram of a run in 0."),
        ([RUN], 200, 0.6, Level.WARNING, "JIT compiler is probably on"),
        ([RUN], 500, 0.0, Level.WARNING, "HTTP 500"),
    ],
)
async def test_a_slow_diagram_is_a_warning_that_says_how_to_switch_the_jit_compiler_off(
    runs: list[object], status: int, pause_s: float, level: Level, words: str
) -> None:
    with answering(status, runs, pause_s) as (host, _), temporary_settings({PREFECT_API_URL: f"http://{host}/api"}):
        finding = await examine_diagrams(slow_s=0.5)
    assert finding.level is level
    assert words in finding.words
    assert ("SET jit = off" in finding.next_step) == (level is Level.WARNING)


async def test_without_an_answer_no_diagram_is_timed() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        assert (await examine_diagrams()).level is Level.WARNING
