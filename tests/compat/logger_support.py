"""A client of the log service that sends the same bytes as existing clients, over each of the three transports. It
shares only the generated messages with the service.
"""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import unquote

import httpx
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from grpc import aio

from deepgrid.compat.logger_api.logger_pb2 import ReadRequest, ReadResponse, WatchListRequest
from tests.services.support import ACCOUNTS, Grid

PATH = "/logger.v1alpha1.LoggerAPI/"
TRANSPORTS = ("grpc", "web", "web-text")
TYPES = {"web": "application/grpc-web+proto", "web-text": "application/grpc-web-text"}
WITHIN_S = 60.0


@dataclass
class Ended(Exception):
    """A stream ended with a status other than 0."""

    code: int
    sentence: str


def log_name(job_id: int) -> str:
    return f"0x{job_id:064x}"


def now_ms() -> int:
    return int(time.time() * 1000)


def sign(account: LocalAccount, text: str) -> bytes:
    """r, s and v, with v 27 or 28."""
    return bytes(account.sign_message(encode_defunct(text=text)).signature)


def read_request(
    job_id: int = 1,
    name: str = "customer",
    timestamp: int | None = None,
    v_offset: int = 0,
    signature: bytes | None = None,
) -> ReadRequest:
    """Return what a client sends: an address with capitals, signed in lower case."""
    account, timestamp = ACCOUNTS[name], now_ms() if timestamp is None else timestamp
    if signature is None:
        made = sign(account, f"read:{account.address.lower()}/{log_name(job_id)}/{timestamp}")
        signature = made[:64] + bytes([made[64] - v_offset])
    return ReadRequest(address=account.address, log_name=log_name(job_id), timestamp=timestamp, signed_hash=signature)


def list_request(name: str = "customer", *, lower: bool = True) -> WatchListRequest:
    account, timestamp = ACCOUNTS[name], int(time.time())
    address = account.address.lower() if lower else account.address
    signature = sign(account, f"watchList:{address}/{timestamp}")
    return WatchListRequest(address=account.address, timestamp=timestamp, signed_hash=signature)


async def stream(
    grid: Grid, transport: str, message: bytes, method: str = "Read", timeout: float = WITHIN_S
) -> AsyncIterator[bytes]:
    """Yield the messages of a call. Raises Ended."""
    if transport == "grpc":
        async for answer in over_grpc(grid, message, PATH + method, timeout):
            yield answer
        return
    headers = {"content-type": TYPES[transport], "x-grpc-web": "1", "grpc-timeout": f"{int(timeout * 1000)}m"}
    body = frame(message)
    body = base64.b64encode(body) if transport == "web-text" else body
    async with (
        httpx.AsyncClient(timeout=WITHIN_S) as client,
        client.stream("POST", grid.url + PATH + method, content=body, headers=headers) as answer,
    ):
        if answer.status_code != 200:
            raise Ended(-answer.status_code, (await answer.aread()).decode())
        async for message in messages_of(answer, text=transport == "web-text"):
            yield message


async def over_grpc(grid: Grid, message: bytes, path: str, timeout: float) -> AsyncIterator[bytes]:
    assert grid.grpc is not None
    async with aio.insecure_channel(grid.grpc) as channel:
        try:
            async for answer in channel.unary_stream(path)(message, timeout=timeout):
                yield answer
        except aio.AioRpcError as error:
            raise Ended(error.code().value[0], error.details() or "") from None


async def messages_of(answer: httpx.Response, *, text: bool) -> AsyncIterator[bytes]:
    """Yield the messages in an answer's frames. Raises Ended after trailers with a status other than 0."""
    data, coded = b"", b""
    async for piece in answer.aiter_bytes():
        coded += piece
        if text:
            whole = len(coded) // 4 * 4
            data += b"".join(base64.b64decode(coded[at : at + 4], validate=True) for at in range(0, whole, 4))
            coded = coded[whole:]
        else:
            data, coded = data + coded, b""
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[1:5], "big"):
            flag, size = data[0], int.from_bytes(data[1:5], "big")
            content, data = data[5 : 5 + size], data[5 + size :]
            if flag == 0x80:
                assert not data, "nothing follows the trailers"
                trailers = dict(line.split(":", 1) for line in content.decode("ascii").split("\r\n") if line)
                if trailers["grpc-status"] != "0":
                    raise Ended(int(trailers["grpc-status"]), unquote(trailers["grpc-message"]))
                return
            assert flag == 0
            yield content
    raise AssertionError("the answer has no trailers")


def frame(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


async def lines_of(grid: Grid, transport: str, request: ReadRequest | None = None) -> list[bytes]:
    """Return all lines of a complete log."""
    message = (request or read_request()).SerializeToString()
    return [ReadResponse.FromString(answer).data async for answer in stream(grid, transport, message)]


async def end_of(grid: Grid, transport: str, message: bytes, method: str = "Read") -> tuple[int, str]:
    """Return status and sentence of a call that gives no answer."""
    try:
        answers = [answer async for answer in stream(grid, transport, message, method)]
    except Ended as ended:
        return ended.code, ended.sentence
    assert answers == []
    return 0, ""
