"""Watches all claimed jobs with one question a poll and wakes those who wait for a change.

While nothing is watched, or everything watched has ended, Slurm is not asked at all. An outage makes
jobs UNKNOWN, never ABSENT: that takes an answer of queue, spool and accounting (see `sightings.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import UNKNOWN, Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.snapshot import Snapshot
from deepgrid.slurm.supervision.queries import conclude_missing

POLL_S = 1.0
POLL_TO_ANSWER = 4  # a slow cluster is asked less often: at most a fifth of the time is spent asking,
LONGEST_POLL_S = 5.0  # but an outage, in which each question takes long, is not stretched
FIRST_ACCOUNT_PAUSE_S, LONGEST_ACCOUNT_PAUSE_S = 1.0, 30.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    job: SlurmJob = UNKNOWN
    watchers: int = 1
    account_pause_s: float = 0.0
    account_after: float = 0.0

    def ask_accounting_at_once(self) -> None:
        self.account_pause_s = self.account_after = 0.0

    def postpone_accounting(self, now: float) -> None:
        self.account_pause_s = min(2 * self.account_pause_s or FIRST_ACCOUNT_PAUSE_S, LONGEST_ACCOUNT_PAUSE_S)
        self.account_after = now + self.account_pause_s


class SlurmMonitor:
    """Latest state of each watched claim. One a cluster; close it to end its loop."""

    def __init__(self, cluster: Cluster, poll_s: float = POLL_S) -> None:
        self._cluster = cluster
        self._poll_s = poll_s
        self._jobs: dict[JobKey, _Watched] = {}
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._clock_ahead_s = time.time() - time.monotonic()
        self.last_error: GridError | None = None
        self._silence: GridError | None = None  # of the accounting, when it was last asked

    def watch(self, key: JobKey) -> None:
        """Begin to watch a claim; calls count, each needs its `unwatch`."""
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
        """Ask at once, accounting too: something has just been done to the claim's job."""
        if watched := self._jobs.get(key):
            watched.ask_accounting_at_once()
        self._wanted.set()
        if self._loop is None or self._loop.done():
            self._loop = asyncio.get_running_loop().create_task(self._watch_all(), name="slurm-monitor")

    def observe(self, key: JobKey) -> SlurmJob:
        """The latest that is known; UNKNOWN before the first answer, during an outage, and for unwatched claims."""
        watched = self._jobs.get(key)
        return watched.job if watched else UNKNOWN

    def cluster_now(self) -> int:
        """Unix time by the login node's clock, which its jobs' times are by; ours until it was asked once."""
        return int(time.monotonic() + self._clock_ahead_s)

    async def changed(self, key: JobKey, seen: SlurmJob, timeout_s: float) -> SlurmJob:
        """Return as soon as the claim's job differs from `seen`, at the latest after `timeout_s`."""
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
            pause_s = max(self._poll_s, min(POLL_TO_ANSWER * (time.monotonic() - began), LONGEST_POLL_S))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause_s)

    async def _poll(self, keys: Sequence[JobKey]) -> None:
        try:
            look = await self._cluster.look(keys)
            self._clock_ahead_s = look.clock - time.monotonic()
            found = self._cluster.sightings.by_look(look, keys, time.monotonic())
            found |= await self._conclude(look, [key for key in keys if key not in found])
            self.last_error = None
        except GridError as error:
            self.last_error = _noted(error, self.last_error)
            found = dict.fromkeys(keys, UNKNOWN)
        except Exception:
            log.exception("Slurm monitor: a poll failed in a way that nobody thought of")
            found = dict.fromkeys(keys, UNKNOWN)
        self._publish(found)

    async def _conclude(self, look: Snapshot, missing: Sequence[JobKey]) -> dict[JobKey, SlurmJob]:
        """Conclusions on jobs that neither queue nor spool knows; those asked about lately keep their state."""
        now = time.monotonic()
        due = [key for key in missing if (watched := self._jobs.get(key)) and watched.account_after <= now]
        if not due:
            return {}
        for key in due:
            self._jobs[key].postpone_accounting(now)
        found, silence = await conclude_missing(self._cluster, look, due)
        self._silence = _noted(silence, self._silence)
        return dict.fromkeys(due, UNKNOWN) | found

    def _publish(self, found: dict[JobKey, SlurmJob]) -> None:
        moved = False
        for key, job in found.items():
            watched = self._jobs.get(key)
            if watched is not None and watched.job != job:
                watched.job, moved = job, True
                if job.phase in (Phase.QUEUED, Phase.RUNNING):
                    watched.ask_accounting_at_once()
        if moved:
            self._changed.set()
            self._changed = asyncio.Event()


def _noted(error: GridError | None, before: GridError | None) -> GridError | None:
    """`error`, logged unless it was the one before: an outage is told once, not at every poll."""
    if error is not None and (before is None or before.message != error.message):
        log.warning("Slurm monitor: %s", error)
    return error
