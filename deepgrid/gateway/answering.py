"""Reads requests and sends answers without a framework: open pages send hundreds of requests per second."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from deepgrid.services.admission.gate import read_body
from deepgrid.services.refusal import Refusal

JSON = "application/json"

# Features that chromium knows. `clipboard-write` stays allowed, because the page copies addresses.
NO_POWERS = (
    "accelerometer autoplay camera clipboard-read display-capture encrypted-media geolocation gyroscope hid"
    " idle-detection local-fonts magnetometer microphone midi payment picture-in-picture publickey-credentials-get"
    " screen-wake-lock serial usb window-management xr-spatial-tracking"
)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types svelte-trusted-html log-search"
)
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in NO_POWERS.split()),
}
_SECURITY = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]


async def send_answer(
    send: Send, status: int, content: bytes, kind: str = JSON, headers: dict[str, str] | None = None
) -> None:
    """Send an answer with the security headers. It is never cached, unless `headers` say otherwise."""
    length = {} if status == 304 else {"Content-Length": str(len(content))}
    named = {"Cache-Control": "no-store", "Content-Type": kind} | length | (headers or {})
    coded = [(name.lower().encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": coded + _SECURITY})
    await send({"type": "http.response.body", "body": content})


async def send_json(send: Send, status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
    await send_answer(send, status, json.dumps(content, ensure_ascii=False).encode(), headers=headers)


async def send_refusal(send: Send, refusal: Refusal) -> None:
    await send_json(send, refusal.status, {"error": refusal.sentence}, refusal.headers())


async def read_json(scope: Scope, receive: Receive, most: int, within_s: float) -> bytes:
    """Return the body of a POST with JSON.

    Refuses other methods and types, and bodies that are too large or too slow.
    """
    if scope["method"] != "POST":
        raise Refusal(405, "Method Not Allowed")
    headers = Headers(scope=scope)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, f"the content must be {JSON}")
    try:
        async with asyncio.timeout(within_s):
            return await read_body(Request(scope, receive), most)
    except TimeoutError:
        raise Refusal(408, "the body came too slowly", hang_up=True) from None
