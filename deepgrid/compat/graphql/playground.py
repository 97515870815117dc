"""The page on which people try queries. It asks no other host, and its policy forbids that."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from fastapi.responses import HTMLResponse


@cache
def _text() -> str:
    return Path(__file__).with_name("playground.html").read_text()


@cache
def _policy() -> str:
    """The Content-Security-Policy: the page's own script and style, and requests to this service."""
    parts = (f"{kind}-src '{_hash(kind)}'" for kind in ("script", "style"))
    return "; ".join(["default-src 'none'", *parts, "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"])


def _hash(tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", _text(), re.S)
    assert found
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


def page() -> HTMLResponse:
    """The answer with the page."""
    return HTMLResponse(_text(), headers={"Content-Security-Policy": _policy(), "X-Content-Type-Options": "nosniff"})
