"""`POST /v1/check`: checks a workflow for the page, by the project's own validator.

Checks run in processes of their own. A process that takes too long is killed, so no file stalls the services. The text
of a file is never logged: it may hold secrets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.types import Receive, Scope, Send

from deepgrid.gateway.answering import read_json, send_answer, send_refusal
from deepgrid.gateway.settings import WebSettings
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.limits import Buckets, Shares, source_in
from deepgrid.services.admission.worker_pool import WorkerPool
from deepgrid.services.refusal import Refusal

ESCAPED = 6  # a character of a file may take six bytes in JSON


class CheckRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: str


class Checks:
    """Checks of all pages, in at most `checks_at_once` processes, in turns per address. `close` ends them."""

    def __init__(self, settings: WebSettings, clock: Callable[[], float] = time.monotonic) -> None:
        limits = settings.limits
        self._limits, self._modules = limits, settings.local
        self._rate = Buckets(limits.checks_per_address, clock)
        self._held = Shares(limits.checks_waiting_per_address, 8 * limits.checks_waiting_per_address)
        turns = FairQueue(limits.checks_at_once, limits.checks_waiting_per_address, limits.check_wait_s)
        within_s = limits.module_within_s if settings.local else limits.check_within_s
        self.pool = WorkerPool("deepgrid.gateway.check_worker", turns, within_s, whole_environment=settings.local)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            content = await self._content(source_in(scope), scope, receive)
        except Refusal as refusal:
            await send_refusal(send, refusal)
        else:
            await send_answer(send, 200, content)

    async def _content(self, source: str, scope: Scope, receive: Receive) -> bytes:
        self._rate.require(source, what="too many checks")
        with self._held.hold(source) as held:
            if not held:
                raise Refusal(429, "too many checks wait already", retry_after_s=2)
            most = ESCAPED * self._limits.check_bytes
            file = _file_of(await read_json(scope, receive, most, self._limits.body_within_s))
            if len(file.encode(errors="surrogatepass")) > self._limits.check_bytes:
                raise Refusal(413, f"the file is larger than {self._limits.check_bytes // 1024} KiB")
            return await self.pool.ask(source, json.dumps({"file": file, "modules": self._modules}).encode())


def _file_of(body: bytes) -> str:
    """Return the file in a body. Refuses with a sentence that repeats nothing of it."""
    try:
        return CheckRequest.model_validate_json(body).file
    except (ValidationError, RecursionError):
        raise Refusal(422, 'the body must be {"file": "the text of a workflow file"}') from None
