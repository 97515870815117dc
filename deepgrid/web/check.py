"""`POST /v1/check`: checks a workflow for the page, by the project's own validator.

Checks run in processes of their own. One that takes too long is killed, so no file stalls the services. The text of a
file is never logged: it may hold secrets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.types import Receive, Scope, Send

from deepgrid.services.admission.limits import Buckets, Shares, source_of
from deepgrid.services.refusal import Refusal
from deepgrid.web.answering import read_json, send_answer, send_refusal
from deepgrid.web.settings import WebSettings

START_WITHIN_S = 60.0
ESCAPED = 6  # a character of a file may take six bytes in JSON
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TMPDIR")

logger = logging.getLogger(__name__)


class CheckRequest(BaseModel):
    """The body of a check."""

    model_config = ConfigDict(extra="forbid")

    file: str


class Checks:
    """Checks of all pages, in at most `checks_at_once` processes. `close` ends them."""

    def __init__(self, settings: WebSettings, clock: Callable[[], float] = time.monotonic) -> None:
        limits = settings.limits
        self._limits, self._modules = limits, settings.local
        self._within_s = limits.module_within_s if settings.local else limits.check_within_s
        self._rate = Buckets(limits.checks_per_address, clock)
        self._waiting = Shares(limits.checks_waiting_per_address, 8 * limits.checks_waiting_per_address)
        self._places = asyncio.Semaphore(limits.checks_at_once)
        self._idle: list[Process] = []
        self._all: set[Process] = set()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        client = scope.get("client")
        try:
            content = await self._content(source_of(client[0] if client else None), scope, receive)
        except Refusal as refusal:
            await send_refusal(send, refusal)
        else:
            await send_answer(send, 200, content)

    async def close(self) -> None:
        for process in list(self._all):
            await self._end(process)

    async def _content(self, source: str, scope: Scope, receive: Receive) -> bytes:
        if not self._rate.take(source):
            raise Refusal(429, "too many checks", retry_after_s=self._rate.wait_s(source))
        with self._waiting.hold(source) as held:
            if not held:
                raise Refusal(429, "too many checks wait already", retry_after_s=2)
            most = ESCAPED * self._limits.check_bytes
            file = _file_of(await read_json(scope, receive, most, self._limits.body_within_s))
            if len(file.encode(errors="surrogatepass")) > self._limits.check_bytes:
                raise Refusal(413, f"the file is larger than {self._limits.check_bytes // 1024} KiB")
            try:
                await asyncio.wait_for(self._places.acquire(), self._limits.check_wait_s)
            except TimeoutError:
                raise Refusal(503, "the checkers are busy; try again", retry_after_s=2) from None
            try:
                return await self._checked(file)
            finally:
                self._places.release()

    async def _checked(self, file: str) -> bytes:
        process = self._idle.pop() if self._idle else await self._start()
        try:
            async with asyncio.timeout(self._within_s):
                found = await _exchange(process, {"file": file, "modules": self._modules})
        except TimeoutError:
            await self._end(process)
            raise Refusal(422, f"the check takes longer than {self._within_s:g} s") from None
        except (OSError, asyncio.IncompleteReadError):  # for example out of memory
            await self._end(process)
            logger.warning("a check of a workflow ended its process, the next check starts another one")
            raise Refusal(422, "the file cannot be checked here; check it with `dps validate`") from None
        except BaseException:
            await self._end(process)
            raise
        self._idle.append(process)
        return found

    async def _start(self) -> Process:
        argv = (sys.executable, "-m", "deepgrid.web.check_worker")
        known = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        env = None if self._modules else known  # the others may hold passwords of the services
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, env=env)
        self._all.add(process)
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await _receive(process)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            await self._end(process)
            logger.error("the process that checks workflows does not start")
            raise Refusal(503, "the checkers do not start; try again", retry_after_s=5) from None
        except BaseException:
            await self._end(process)
            raise
        return process

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        if process.returncode is None:
            process.kill()
        await process.wait()


def _file_of(body: bytes) -> str:
    """The file in a body. Refuses with a sentence that repeats nothing of it."""
    try:
        return CheckRequest.model_validate_json(body).file
    except (ValidationError, RecursionError):
        raise Refusal(422, 'the body must be {"file": "the text of a workflow file"}') from None


async def _exchange(process: Process, message: dict[str, Any]) -> bytes:
    content = json.dumps(message).encode()
    assert process.stdin is not None
    process.stdin.write(struct.pack(">I", len(content)) + content)
    await process.stdin.drain()
    return await _receive(process)


async def _receive(process: Process) -> bytes:
    assert process.stdout is not None
    length = struct.unpack(">I", await process.stdout.readexactly(4))[0]
    return await process.stdout.readexactly(length)
