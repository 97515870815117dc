"""Serves the build of the web app, compressed if the client accepts it.

Files with a hash in their name are cached for a year. The rest is revalidated.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import Scope, Send

from deepgrid.gateway.answering import send_answer

INDEX = "index.html"
HASHED = "assets/"  # the build puts a hash of the content into the names of this folder
FOR_A_YEAR = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>The web app is not built</title>
<h1>The web app is not built</h1>
<p>Run <code>./run web build</code> in the checkout, then reload this page.</p>
</html>
"""


@dataclass(frozen=True)
class Asset:
    """One file of the build, with its compressed copy if there is one."""

    content: bytes
    packed: bytes | None
    kind: str
    tag: str
    caching: str


class Pages:
    """The files of the build in `folder`, kept in memory. Each request for the start page checks for a new build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = 0
        self._assets: dict[str, Asset] = {}
        self.build: str | None = None  # hash of the inputs of the build
        self._read_anew()

    def has(self, path: str) -> bool:
        return path == "/" or path[1:] in self._assets

    async def answer(self, scope: Scope, send: Send) -> None:
        """Answer a GET or HEAD request for a path that `has` accepts."""
        name = scope["path"][1:] or INDEX
        if name == INDEX:
            self._read_anew()
        asset, is_head = self._assets.get(name), scope["method"] == "HEAD"
        if asset is None:
            await send_answer(send, 503, NOT_BUILT, "text/html; charset=utf-8", {"Cache-Control": "no-cache"})
            return
        asked = Headers(scope=scope)
        packed = asset.packed is not None and accepts_gzip(asked.get("accept-encoding", ""))
        content = asset.packed if packed and asset.packed is not None else asset.content
        tag = f'"{asset.tag}-gz"' if packed else f'"{asset.tag}"'
        headers = {"ETag": tag, "Cache-Control": asset.caching, "Vary": "Accept-Encoding"}
        if packed:
            headers["Content-Encoding"] = "gzip"
        if tag in [one.strip().removeprefix("W/") for one in asked.get("if-none-match", "").split(",")]:
            await send_answer(send, 304, b"", asset.kind, headers)
            return
        headers["Content-Length"] = str(len(content))
        await send_answer(send, 200, b"" if is_head else content, asset.kind, headers)

    def _read_anew(self) -> None:
        """Read the build if it changed."""
        try:
            stamp = (self._folder / INDEX).stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp == self._stamp:
            return
        self._stamp = stamp
        found = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        names = [name for name in found if not name.endswith(".gz")] if stamp else []
        self._assets = {name: _asset(name, found[name], found.get(f"{name}.gz")) for name in names}
        self.build = _build_of(self._assets.get("build.json"))


def accepts_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip."""
    for part in accepted.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _asset(name: str, path: Path, packed: Path | None) -> Asset:
    content = path.read_bytes()
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        kind += "; charset=utf-8"
    caching = FOR_A_YEAR if name.startswith(HASHED) else "no-cache"
    tag = hashlib.sha256(content).hexdigest()[:32]
    return Asset(content, packed.read_bytes() if packed else None, kind, tag, caching)


def _build_of(asset: Asset | None) -> str | None:
    try:
        found = json.loads(asset.content)["inputs"] if asset else None
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None
