"""Polls all claimed jobs with one query per poll, and wakes the callers that wait for a change.

The monitor does not query Slurm while no watched job is open. An outage makes jobs UNKNOWN, never ABSENT: ABSENT needs
answers from queue, spool and accounting (see `verdict.py`). `query_verdicts` queries them once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError, SlurmError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import UNKNOWN, Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.observe.snapshot import Snapshot

POLL_S = 1.0
# A slow cluster is polled less often: queries take at most a fifth of the time. The upper bound is for outages, in
# which each query takes long.
PAUSE_PER_QUERY_SECOND = 4
LONGEST_POLL_S = 5.0
FIRST_ACCOUNTING_PAUSE_S, LONGEST_ACCOUNTING_PAUSE_S = 1.0, 30.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    job: SlurmJob = UNKNOWN
    watchers: int = 1
    accounting_pause_s: float = 0.0
    accounting_due_at: float = 0.0

    def query_accounting_now(self) -> None:
        self.accounting_pause_s = self.accounting_due_at = 0.0

    def postpone_accounting(self, now: float) -> None:
        pause_s = 2 * self.accounting_pause_s or FIRST_ACCOUNTING_PAUSE_S
        self.accounting_pause_s = min(pause_s, LONGEST_ACCOUNTING_PAUSE_S)
        self.accounting_due_at = now + self.accounting_pause_s


class SlurmMonitor:
    """The latest state of each watched claim. Use one monitor per cluster, and close it to end its loop."""

    def __init__(self, cluster: Cluster, poll_s: float = POLL_S) -> None:
        self._cluster = cluster
        self._poll_s = poll_s
        self._jobs: dict[JobKey, _Watched] = {}
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._clock_ahead_s = time.time() - time.monotonic()
        self.last_error: GridError | None = None
        self._silence = ConditionLog(log, "Slurm monitor: a poll failed")
        self._accounting_silence = ConditionLog(log, "Slurm monitor: accounting does not answer")

    def watch(self, key: JobKey) -> None:
        """Start watching a claim. Calls are counted: each needs its own `unwatch`."""
        if key in self._jobs:
            self._jobs[key].watchers += 1
        else:
            self._jobs[key] = _Watched()
        self.look_now(key)

    def unwatch(self, key: JobKey) -> None:
        """End one `watch`."""
        watched = self._jobs.get(key)
        if watched is not None:
            watched.watchers -= 1
            if not watched.watchers:
                del self._jobs[key]

    def look_now(self, key: JobKey) -> None:
        """Poll at once, including accounting. Call this after an action on the claim's job."""
        if watched := self._jobs.get(key):
            watched.query_accounting_now()
        self._wanted.set()
        if self._loop is None or self._loop.done():
            self._loop = asyncio.get_running_loop().create_task(self._watch_all(), name="slurm-monitor")

    def observe(self, key: JobKey) -> SlurmJob:
        """Return the latest known state; UNKNOWN before the first answer, in an outage, and for unwatched claims."""
        watched = self._jobs.get(key)
        return watched.job if watched else UNKNOWN

    def cluster_now(self) -> int:
        """Unix time by the login node's clock, to compare with job times. Before the first poll: by our own clock."""
        return int(time.monotonic() + self._clock_ahead_s)

    async def changed(self, key: JobKey, seen: SlurmJob, timeout_s: float) -> SlurmJob:
        """Wait until the claim's job differs from `seen`, at most for `timeout_s`. Returns its state."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.observe(key) == seen:
                    await self._changed.wait()
        return self.observe(key)

    async def close(self) -> None:
        """End the loop."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop

    async def _watch_all(self) -> None:
        while True:
            open_keys = [key for key, watched in self._jobs.items() if watched.job.phase is not Phase.ENDED]
            if not open_keys:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            self._wanted.clear()
            began = time.monotonic()
            await self._poll(open_keys)
            pause_s = max(self._poll_s, min(PAUSE_PER_QUERY_SECOND * (time.monotonic() - began), LONGEST_POLL_S))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause_s)

    async def _poll(self, keys: Sequence[JobKey]) -> None:
        try:
            snapshot = await self._cluster.snapshot(keys)
            self._clock_ahead_s = snapshot.clock - time.monotonic()
            found = self._cluster.verdicts.from_snapshot(snapshot, keys, time.monotonic())
            found |= await self._query_missing(snapshot, [key for key in keys if key not in found])
            self.last_error = None
            self._silence.end()
        except GridError as error:
            self.last_error = error
            self._silence.note(error)
            found = dict.fromkeys(keys, UNKNOWN)
        except Exception:
            log.exception("Slurm monitor: a poll failed, polling again: unexpected error")
            found = dict.fromkeys(keys, UNKNOWN)
        self._publish(found)

    async def _query_missing(self, snapshot: Snapshot, missing: Sequence[JobKey]) -> dict[JobKey, SlurmJob]:
        """Return verdicts on jobs that neither queue nor spool knows. Jobs whose pause is not over keep their state."""
        now = time.monotonic()
        due = [key for key in missing if (watched := self._jobs.get(key)) and watched.accounting_due_at <= now]
        if not due:
            return {}
        for key in due:
            self._jobs[key].postpone_accounting(now)
        found, error = await query_missing(self._cluster, snapshot, due)
        if error is None:
            self._accounting_silence.end()
        else:
            self._accounting_silence.note(error)
        return dict.fromkeys(due, UNKNOWN) | found

    def _publish(self, found: dict[JobKey, SlurmJob]) -> None:
        moved = False
        for key, job in found.items():
            watched = self._jobs.get(key)
            if watched is not None and watched.job != job:
                watched.job, moved = job, True
                if job.phase in (Phase.QUEUED, Phase.RUNNING):
                    watched.query_accounting_now()
        if moved:
            self._changed.set()
            self._changed = asyncio.Event()


async def query_verdicts(cluster: Cluster, keys: Sequence[JobKey]) -> tuple[Snapshot, dict[JobKey, SlurmJob]]:
    """Take a snapshot of the cluster and return it with the state of each claim.

    Further queries are made only for claims that the snapshot does not show. Raises SlurmUnreachable when the cluster
    or its accounting does not answer.
    """
    snapshot = await cluster.snapshot(keys)
    states = cluster.verdicts.from_snapshot(snapshot, keys, time.monotonic())
    missing = [key for key in keys if key not in states]
    found, error = await query_missing(cluster, snapshot, missing)
    if error is not None:
        raise error
    return snapshot, states | found


async def query_missing(
    cluster: Cluster, snapshot: Snapshot, missing: Sequence[JobKey]
) -> tuple[dict[JobKey, SlurmJob], SlurmError | None]:
    """Return the states of claims that the snapshot does not show, by the controller's memory and then by accounting.

    Accounting is queried only for claims whose end the controller does not know. Neither is queried for claims that
    were never handed to Slurm. When a source does not answer, its error is returned, and the claims that it could have
    known are omitted.
    """
    remembered: list[Row] = []
    accounted: list[Row] = []
    failure = None
    asked = [key for key in missing if snapshot.was_tried(key)]
    try:
        remembered = await cluster.remembered() if asked else []
        asked = [key for key in asked if _needs_accounting(snapshot, key, remembered)]
        accounted = await cluster.accounting_of({key: snapshot.ids.get(key.comment) for key in asked})
    except SlurmError as error:
        failure, missing = error, [key for key in missing if key not in asked]
    return cluster.verdicts.from_records(snapshot, missing, remembered, accounted, time.monotonic()), failure


def _needs_accounting(snapshot: Snapshot, key: JobKey, remembered: Sequence[Row]) -> bool:
    """Return whether accounting may know more: no end is known, or only the end of the last of several runs."""
    end = snapshot.records_of(key, remembered).end
    return end is None or end.requeued or snapshot.is_unclear(key, end)
