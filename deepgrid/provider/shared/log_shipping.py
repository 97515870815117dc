"""Ships the output of jobs to the log service. One remote command reads the output of all jobs.

Each job has the same share of the rate. A job that writes faster is delivered later, if need be long after its end: the
output stays in the claim's folder. Only the middle of an output that is larger than a log is left out, and the log says
so. The service knows how far it got, so a restarted supervisor continues where the previous one stopped. Shipping never
delays a settlement.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Self

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.log_plan import gap_line, head_bytes, next_portion, note_line, usable_bytes, wait_line
from deepgrid.services.client import ServicesClient
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES, LogPosition
from deepgrid.slurm.cluster import Cluster, OutputPage

FAR = 2**62  # an offset beyond every output: only its size is read

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogShippingSettings:
    """Intervals and limits of the log shipper."""

    poll_s: float = 1.0
    bytes_per_s: int = 256 * 1024  # of each job
    read_bytes: int = 8 * 1024 * 1024  # of all jobs together, well below the limit of one remote command's output
    max_bytes_per_job: int = 64 * 1024 * 1024  # the log service may keep less
    drain_s: float = 30.0  # a carrier waits this long for the rest of its log
    unreadable_s: float = 30.0  # the rest of an output that cannot be read for this long is given up
    max_pushes: int = 8  # at the same time

    def chunk_bytes(self, jobs: int) -> int:
        """Return the bytes to read at once of each job, for this number of jobs."""
        return max(1, min(int(self.bytes_per_s * self.poll_s), self.read_bytes // jobs, MAX_LOG_CHUNK_BYTES))


@dataclass
class _Stream:
    at: LogPosition = field(default_factory=LogPosition)
    ending: bool = False
    pushing: bool = False
    waits: bool = False  # its head is full, and its job is not over
    in_line: bool = True  # the log may end within a line
    stuck_since: float | None = None  # by the loop's clock
    notes: list[str] = field(default_factory=list)  # lines of the supervisor that wait
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class _Move:
    """One append: `data` brings the log to `after`, with `pending` bytes to follow."""

    data: bytes
    after: LogPosition
    pending: int
    final: bool = False
    note: str = ""


class LogShipper:
    """One loop for all jobs of a supervisor. `journal` keeps the claims whose logs are not delivered yet."""

    def __init__(
        self,
        reader: Cluster,
        sink: ServicesClient,
        settings: LogShippingSettings = LogShippingSettings(),
        journal: ClaimJournal | None = None,
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._settings = settings
        self._journal = journal
        self._undelivered = set(journal or ())  # by the previous process
        self._streams: dict[JobKey, _Stream] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.max_pushes)
        self._unread = ConditionLog(logger, "outputs of jobs cannot be read")
        self._undeliverable = ConditionLog(logger, "logs are delayed")

    @property
    def undelivered(self) -> frozenset[JobKey]:
        """Claims whose logs the previous process did not deliver, and which nothing has followed since."""
        return frozenset(self._undelivered)

    def holds(self, key: JobKey) -> bool:
        """Return whether the log of this claim is not delivered to its end."""
        return key in self._streams or key in self._undelivered

    def follow(self, key: JobKey) -> None:
        """Ship this job's output from now on."""
        self._streams.setdefault(key, _Stream())
        self._undelivered.discard(key)

    def say(self, key: JobKey, text: str) -> None:
        """Put a line of the supervisor into the log of this job, if its log is shipped."""
        if stream := self._streams.get(key):
            stream.notes.append(text)

    def forget(self, key: JobKey) -> None:
        """Take this claim off the journal."""
        self._undelivered.discard(key)

    async def until_idle(self) -> None:
        """Return when all logs are delivered."""
        while self._streams:  # noqa: ASYNC110 - the logs change while this waits
            await asyncio.sleep(self._settings.poll_s)

    def end(self, key: JobKey) -> None:
        """Ship the rest of this job's output, which is complete, and close the log."""
        self.follow(key)
        self._streams[key].ending = True

    async def finish(self, key: JobKey) -> None:
        """End the log like `end` if the job is followed, and wait up to `drain_s`. Shipping continues after that."""
        stream = self._streams.get(key)
        if stream is None:
            return
        stream.ending = True
        try:
            async with asyncio.timeout(self._settings.drain_s):
                await stream.done.wait()
        except TimeoutError:
            logger.info("job %d: the rest of its log is delivered later", key.job_id)

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
            if self._journal is not None:
                self._journal.hold(self._undelivered.union(self._streams))
            if streams := {key: stream for key, stream in self._streams.items() if not stream.pushing}:
                try:
                    await self._ship(streams)
                    self._unread.end()
                except GridError as error:
                    self._unread.note(error.message)
                except Exception:  # a bug must not end the logs of all jobs
                    logger.exception("logs are delayed, trying again: unexpected error")
            await asyncio.sleep(self._settings.poll_s)

    async def _ship(self, streams: dict[JobKey, _Stream]) -> None:
        ending = {key for key, stream in streams.items() if stream.ending}
        limit = self._settings.chunk_bytes(len(self._streams))
        offsets = {key: FAR if s.waits and key not in ending else s.at.source for key, s in streams.items()}
        pages = await self._reader.read_output_pages(offsets, limit)
        for key, stream in streams.items():
            move = self._next(stream, pages.get(key), ended=key in ending)
            if move is None:
                if key in ending and self._is_stuck(stream):
                    logger.warning("job %d: its output cannot be read any more, its log stays incomplete", key.job_id)
                    self._drop(key, stream)
                continue
            stream.stuck_since = None
            stream.pushing = True  # each log has its own push, so none waits for another
            task = asyncio.create_task(self._push(key, stream, move))
            self._pushes.add(task)
            task.add_done_callback(self._pushes.discard)

    def _next(self, stream: _Stream, page: OutputPage | None, *, ended: bool) -> _Move | None:
        """Return the next append; None if there is nothing to ship now."""
        at, most = stream.at, min(self._settings.max_bytes_per_job, stream.at.most)
        if page is None:
            page = OutputPage(0, b"")  # a job that never started has no output
        rest, is_over = max(0, page.size - at.source), ended and page.size == at.source
        if stream.notes and (is_over or not ended) and (move := _note_move(stream, most, rest)):
            return move
        if is_over:
            return _Move(b"", at, 0, final=True)
        portion = next_portion(at, page.size, most, ended=ended)
        stream.waits = not ended and rest > 0 and portion.ship == 0
        if portion.leave_out:
            line = gap_line(portion.leave_out, new_line=stream.in_line)
            line = line if at.offset + len(line) <= most else b""  # the counts say it in any case
            return _Move(line, at.after_gap(line, portion.leave_out), rest - portion.leave_out)
        if stream.waits and at.offset == head_bytes(most):
            line = wait_line(new_line=stream.in_line)
            return _Move(line, at.after_gap(line, 0), rest)
        data = page.data[: portion.ship]
        final = ended and at.source + len(data) == page.size and not stream.notes
        return _Move(data, at.after(data), rest - len(data), final) if data else None

    def _is_stuck(self, stream: _Stream) -> bool:
        """Return whether nothing could be read of an output that is not read to its end, for some time."""
        now = asyncio.get_running_loop().time()
        stream.stuck_since = now if stream.stuck_since is None else stream.stuck_since
        return now - stream.stuck_since >= self._settings.unreadable_s

    async def _push(self, key: JobKey, stream: _Stream, move: _Move) -> None:
        try:
            async with self._slots:
                reached = await self._sink.ship_log(
                    key.job_id, key.claimed_at, stream.at, move.data, move.after, pending=move.pending, final=move.final
                )
        except GridError as error:
            if error.transient:
                self._undeliverable.note(f"job {key.job_id}: {error.message}")
                if move.note:
                    stream.notes.insert(0, move.note)
            else:
                logger.warning("job %d: its log is delayed: %s", key.job_id, error.message)
                self._drop(key, stream)  # the service will accept no more of this log
            return
        except Exception:  # a malformed answer
            logger.exception("job %d: its log is delayed: unexpected error", key.job_id)
            return
        finally:
            stream.pushing = False
        self._undeliverable.end()
        went_on = (reached.offset, reached.source) == (move.after.offset, move.after.source)
        stream.at, stream.in_line = reached, not (went_on and move.data.endswith(b"\n"))
        if move.final and went_on:
            self._drop(key, stream)

    def _drop(self, key: JobKey, stream: _Stream) -> None:
        stream.done.set()
        if self._streams.get(key) is stream:
            del self._streams[key]


def _note_move(stream: _Stream, most: int, rest: int) -> _Move | None:
    """Return the append of the next line of the supervisor; None if the log has no room for it."""
    note = stream.notes.pop(0)
    line = note_line(note, new_line=stream.in_line and stream.at.offset > 0)
    if stream.at.offset + len(line) > usable_bytes(most):
        return None
    return _Move(line, stream.at.after_gap(line, 0), rest, note=note)
