"""A small web server that serves and receives files, for input and output over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

REPLY = rb"http://127.0.0.1/a%20b?x=1 \n"

SHOWN = r"http://127.0.0.1/a b?x=1 \n"


class Store:
    """The files that the server serves, with `headers`, and has received. Each answer takes `delay_s`."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.files: dict[str, bytes] = {}
        self.headers: dict[str, str] = {}
        self.received: dict[str, bytes] = {}
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # with HTTP/1.0 a client that sends waits a second for `100 Continue`

            def do_GET(self) -> None:
                content = store.files.get(self.path)
                self.answer(404 if content is None else 200, content or b"")

            def do_PUT(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                refused = self.path.startswith("/closed")
                if not refused:
                    store.received[self.path] = content
                self.answer(403 if refused else 200, b"" if refused else REPLY)

            def answer(self, status: int, content: bytes) -> None:
                time.sleep(store.delay_s)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in store.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    thread = threading.Thread(target=store.server.serve_forever, daemon=True)
    thread.start()
    yield store
    store.server.shutdown()
    store.server.server_close()
    thread.join()
