"""Ships the output of running jobs to the log service, by offset, for all jobs in one remote command.

The service knows how far it got, so a restarted supervisor continues where the last one stopped.
Shipping never holds up a settlement: what cannot be delivered within the bound is left out, and so is what a job
writes beyond `MOST_BYTES`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey

POLL_S = 1.0
CHUNK_BYTES = 256 * 1024
READ_BYTES = 8 * 1024 * 1024  # of all jobs together, well below what one remote command may answer
MOST_BYTES = 64 * 1024 * 1024  # of one job; the log service keeps no more
DRAIN_S = 30.0
PUSHES_AT_ONCE = 8

logger = logging.getLogger(__name__)


class OutputReader(Protocol):
    """Reads what jobs wrote since the given offsets (bytes), in one go."""

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, bytes]: ...


class LogSink(Protocol):
    """The log service as the shipper sees it; `push_log` returns the next offset it expects."""

    async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int: ...


@dataclass
class _Stream:
    offset: int = 0
    ending: bool = False
    pushing: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)


class LogShipper:
    """One loop for all jobs of a supervisor."""

    def __init__(self, reader: OutputReader, sink: LogSink) -> None:
        self._reader = reader
        self._sink = sink
        self._streams: dict[JobKey, _Stream] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(PUSHES_AT_ONCE)

    def follow(self, key: JobKey) -> None:
        """Ship this job's output from now on."""
        self._streams.setdefault(key, _Stream())

    async def finish(self, key: JobKey) -> None:
        """Ship what is left and close the log, within `DRAIN_S`."""
        stream = self._streams.get(key)
        if stream is None:
            return
        stream.ending = True
        try:
            async with asyncio.timeout(DRAIN_S):
                await stream.done.wait()
        except TimeoutError:
            logger.warning("job %d: the end of its log could not be delivered", key.job_id)
        finally:
            self._streams.pop(key, None)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.create_task(self._run(), name="log-shipper")
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._loop, *self._pushes):
            task.cancel()
        await asyncio.gather(self._loop, *self._pushes, return_exceptions=True)

    async def _run(self) -> None:
        """Ship for ever; a fault of the login node or the service only delays."""
        while True:
            if streams := {key: stream for key, stream in self._streams.items() if not stream.pushing}:
                try:
                    await self._ship(streams)
                except GridError as error:
                    logger.warning("logs wait: %s", error.message)
                except Exception:  # a mistake must not end everybody's logs
                    logger.exception("logs wait")
            await asyncio.sleep(POLL_S)

    async def _ship(self, streams: dict[JobKey, _Stream]) -> None:
        ending = {key for key, stream in streams.items() if stream.ending}
        limit = max(1, min(CHUNK_BYTES, READ_BYTES // len(self._streams)))
        fresh = await self._reader.read_output(
            {key: s.offset for key, s in streams.items() if s.offset < MOST_BYTES}, limit
        )
        for key, stream in streams.items():
            data = fresh.get(key, b"")[: max(0, MOST_BYTES - stream.offset)]
            final = key in ending and len(data) < limit
            if data or final:
                stream.pushing = True  # no log waits for another one's
                task = asyncio.create_task(self._push(key, stream, data, final=final))
                self._pushes.add(task)
                task.add_done_callback(self._pushes.discard)

    async def _push(self, key: JobKey, stream: _Stream, data: bytes, *, final: bool) -> None:
        end = stream.offset + len(data)
        try:
            async with self._slots:
                stream.offset = await self._sink.push_log(key.job_id, stream.offset, data, final=final)
        except GridError as error:
            logger.warning("job %d: its log waits: %s", key.job_id, error.message)
            if error.transient:
                return
            end = stream.offset  # refused for good: nothing more of it is taken
            final = True
        except Exception:  # an answer that makes no sense
            logger.exception("job %d: its log waits", key.job_id)
            return
        finally:
            stream.pushing = False
        if final and stream.offset >= end:
            stream.done.set()
            self._streams.pop(key, None)
