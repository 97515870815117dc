"""Processes that examine untrusted input. A process that takes too long is killed, so no text stalls the services."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
import sys
from asyncio.subprocess import PIPE, Process

from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.refusal import Refusal

START_WITHIN_S = 60.0
SMALL_BYTES = 4 * 1024
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TMPDIR")

logger = logging.getLogger(__name__)


class WorkerPool:
    """Asks processes of `python -m MODULE`, whose other side is `deepgrid.services.worker_loop`.

    Parties take turns. While processes are in use, one more waits, and replaces a process that is killed.
    """

    def __init__(self, module: str, turns: FairQueue, within_s: float, *, whole_environment: bool = False) -> None:
        self._module, self._turns, self._within_s = module, turns, within_s
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        self._environment = None if whole_environment else kept  # the others may hold passwords of the services
        self._idle: list[Process] = []
        self._spare: asyncio.Task[Process] | None = None
        self._all: set[Process] = set()

    async def ask(self, party: str, message: bytes) -> bytes:
        """Return the answer of a process.

        Refuses slow requests with 422, and requests that may be repeated with 429 or 503.
        """
        async with self._turns.turn(party, large=len(message) > SMALL_BYTES):
            process = await self._take()
            try:
                async with asyncio.timeout(self._within_s):
                    found = await _exchange(process, message)
            except TimeoutError:
                raise Refusal(422, f"the check takes longer than {self._within_s:g} s") from None
            except (OSError, asyncio.IncompleteReadError):  # for example out of memory
                logger.warning("a check ended its process, the next one uses another")
                raise Refusal(422, "this cannot be checked here; check it with `dps validate`") from None
            else:
                self._idle.append(process)
                return found
            finally:
                if process not in self._idle:
                    await self._end(process)

    async def close(self) -> None:
        """End all processes."""
        if self._spare is not None:
            self._spare.cancel()
            await asyncio.gather(self._spare, return_exceptions=True)
        for process in list(self._all):
            await self._end(process)

    async def _take(self) -> Process:
        """Return a process that is not in use. Starts the next one in time."""
        if self._idle:
            return self._idle.pop()
        starting, self._spare = self._spare or asyncio.create_task(self._start()), None
        process = await starting
        if self._spare is None and not self._idle:
            self._spare = asyncio.create_task(self._start())
        return process

    async def _start(self) -> Process:
        argv = (sys.executable, "-m", self._module)
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, env=self._environment)
        self._all.add(process)
        ready = False
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await _receive(process)
            ready = True
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            logger.error("the process %s does not start", self._module)
            raise Refusal(503, "the checkers do not start; try again", retry_after_s=5) from None
        finally:
            if not ready:
                await self._end(process)
        return process

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _exchange(process: Process, message: bytes) -> bytes:
    assert process.stdin is not None
    process.stdin.write(struct.pack(">I", len(message)) + message)
    await process.stdin.drain()
    return await _receive(process)


async def _receive(process: Process) -> bytes:
    assert process.stdout is not None
    length = struct.unpack(">I", await process.stdout.readexactly(4))[0]
    return await process.stdout.readexactly(length)
