"""A web server for files, with ranges, tags and faults."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import quote

from deepgrid.client import ClientSettings

QUICK = ClientSettings(patience_s=5, longest_pause_s=0.05)
IMPATIENT = ClientSettings(patience_s=0.2, longest_pause_s=0.05)
TAG, DAY = '"0-1"', "2026-01-02T03:04:05.000Z"
MODIFIED = "Fri, 02 Jan 2026 03:04:05 GMT"


class FileServer:
    """Serves `files`.

    Attributes:
        files: Content by path, with the query; a path without one serves all queries.
        tags: ETag by path.
        headers: Further headers of all answers.
        cuts: Each answer uses one up: the connection breaks after this many bytes of the body. None means no break.
        statuses: Each answer uses one up: it has this status and no body. 0 means the usual answer.
        ranges: Whether it can send a part of a file.
        asked: Path and Range of all requests.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.cuts: list[int | None] = []
        self.statuses: list[int] = []
        self.ranges = True
        self.asked: list[tuple[str, str]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def found(self, path: str) -> bytes | None:
        """Return the content at a path."""
        return self.files.get(path, self.files.get(path.partition("?")[0]))

    def tag(self, path: str) -> str | None:
        """Return the ETag at a path."""
        return self.tags.get(path, self.tags.get(path.partition("?")[0]))

    def list_bucket(self, name: str, keys: list[str]) -> None:
        """Serve a bucket with these keys, which no usual server would store. Each object holds its key."""
        entries = ""
        for key in keys:
            path = quote(key, safe="/")
            self.files[f"/{name}/{path}"] = key.encode()
            size = len(key.encode())
            about = f"<Size>{size}</Size><ETag>{TAG}</ETag><LastModified>{DAY}</LastModified>"
            entries += f"<Contents><Key>{path}</Key>{about}</Contents>"
            self.tags[f"/{name}/{path}"] = TAG
        self.files[f"/{name}"] = (
            f"<ListBucketResult><Name>{name}</Name><EncodingType>url</EncodingType>{entries}</ListBucketResult>".encode()
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(store: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            store.asked.append((self.path, asked))
            status = store.statuses.pop(0) if store.statuses else 0
            content, tag = store.found(self.path), store.tag(self.path)
            wanted = self.headers.get("If-Match")
            if status or content is None or (wanted and wanted != tag):
                self._send(status or (404 if content is None else 412), b"", {})
            elif asked and store.ranges:
                self._send_range(content, asked)
            else:
                self._send(200, content, {})

        def _send_range(self, content: bytes, asked: str) -> None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            if int(first) >= len(content):
                self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            part = content[int(first) : int(last) + 1 if last else None]
            shown = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
            self._send(206, part, {"Content-Range": shown})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            cut = store.cuts.pop(0) if store.cuts and status in (200, 206) else None
            self.send_response(status)
            tag = {} if (found := store.tag(self.path)) is None else {"ETag": found}
            for name, value in {"Content-Length": str(len(body)), **tag, **store.headers, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if cut is None else body[:cut])
            self.close_connection = cut is not None

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
