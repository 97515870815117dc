"""Ships the output of running jobs to the log service, by offset. One remote command reads the output of all jobs.

The service knows how far it got, so a restarted supervisor continues where the previous one stopped.
Shipping never delays a settlement. Output that cannot be delivered within `drain_s` is left out, as is output beyond
`max_bytes_per_job`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogShippingSettings:
    """Intervals and limits of the log shipper."""

    poll_s: float = 1.0
    chunk_bytes: int = 256 * 1024
    read_bytes: int = 8 * 1024 * 1024  # of all jobs together, well below the limit of one remote command's output
    max_bytes_per_job: int = 64 * 1024 * 1024  # the log service keeps no more
    drain_s: float = 30.0  # for the rest of a log after its job's end
    max_pushes: int = 8  # at the same time


class OutputReader(Protocol):
    """Reads what jobs wrote since the given offsets (bytes), in one command."""

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, bytes]: ...


class LogSink(Protocol):
    """The log service as the shipper sees it. `push_log` returns the next offset that it expects."""

    async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int: ...


@dataclass
class _Stream:
    offset: int = 0
    ending: bool = False
    pushing: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)


class LogShipper:
    """One loop for all jobs of a supervisor."""

    def __init__(
        self,
        reader: OutputReader,
        sink: LogSink,
        settings: LogShippingSettings = LogShippingSettings(),
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._settings = settings
        self._streams: dict[JobKey, _Stream] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.max_pushes)

    def follow(self, key: JobKey) -> None:
        """Ship this job's output from now on."""
        self._streams.setdefault(key, _Stream())

    async def finish(self, key: JobKey) -> None:
        """Ship the rest and close the log, within `drain_s`."""
        stream = self._streams.get(key)
        if stream is None:
            return
        stream.ending = True
        try:
            async with asyncio.timeout(self._settings.drain_s):
                await stream.done.wait()
        except TimeoutError:
            logger.warning("job %d: the end of its log is not delivered in time and is left out", key.job_id)
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
        """Ship forever. A failure of the login node or the service only delays the logs."""
        while True:
            if streams := {key: stream for key, stream in self._streams.items() if not stream.pushing}:
                try:
                    await self._ship(streams)
                except GridError as error:
                    logger.warning("logs are delayed, trying again: %s", error.message)
                except Exception:  # a bug must not end the logs of all jobs
                    logger.exception("logs are delayed, trying again: unexpected error")
            await asyncio.sleep(self._settings.poll_s)

    async def _ship(self, streams: dict[JobKey, _Stream]) -> None:
        ending = {key for key, stream in streams.items() if stream.ending}
        most = self._settings.max_bytes_per_job
        limit = max(1, min(self._settings.chunk_bytes, self._settings.read_bytes // len(self._streams)))
        fresh = await self._reader.read_output({key: s.offset for key, s in streams.items() if s.offset < most}, limit)
        for key, stream in streams.items():
            data = fresh.get(key, b"")[: max(0, most - stream.offset)]
            final = key in ending and len(data) < limit
            if data or final:
                stream.pushing = True  # each log has its own push, so none waits for another
                task = asyncio.create_task(self._push(key, stream, data, final=final))
                self._pushes.add(task)
                task.add_done_callback(self._pushes.discard)

    async def _push(self, key: JobKey, stream: _Stream, data: bytes, *, final: bool) -> None:
        end = stream.offset + len(data)
        try:
            async with self._slots:
                stream.offset = await self._sink.push_log(key.job_id, stream.offset, data, final=final)
        except GridError as error:
            logger.warning("job %d: its log is delayed: %s", key.job_id, error.message)
            if error.transient:
                return
            end = stream.offset  # the service will accept no more of this log
            final = True
        except Exception:  # a malformed answer
            logger.exception("job %d: its log is delayed: unexpected error", key.job_id)
            return
        finally:
            stream.pushing = False
        if final and stream.offset >= end:
            stream.done.set()
            self._streams.pop(key, None)
