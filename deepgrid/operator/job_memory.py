"""The hot jobs of the grid as last reported, and conclusions from their changes about providers and customers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.operator_metrics import OperatorMetrics
from deepgrid.operator.store import GivenBack, OperatorStore
from deepgrid.operator.use_ledger import UseLedger
from deepgrid.scheduling.market import Reliability, SchedulerSettings

SERVED = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.OUT_OF_CREDITS)


class JobMemory:
    """Keeps hot jobs, who gave them back, when they should start, and how reliable each provider was lately."""

    def __init__(
        self,
        store: OperatorStore,
        metrics: OperatorMetrics,
        settings: SchedulerSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._half_life_s = settings.half_life_s
        self.use = UseLedger(store, settings)
        self._clock = clock
        self.hot: dict[int, Job] = {}
        self._given_back = store.given_back()
        self._late: dict[int, tuple[str, str]] = {}  # jobs that were just taken from a provider, and why
        self._estimates: dict[int, int] = {}
        self._records: dict[str, tuple[Reliability, float]] = {}

    # -- changes ----------------------------------------------------------------------------

    def note(self, jobs: Iterable[Job]) -> None:
        """Update the memory from changed jobs."""
        over: list[int] = []
        for job in jobs:
            before = self.hot.get(job.id)
            self._note_given_back(before, job)
            self._note_end(before, job)
            self._note_start(job)
            self.use.note(before, job, self._clock())
            if job.status.hot:
                self.hot[job.id] = job
            else:
                self.hot.pop(job.id, None)
                self._estimates.pop(job.id, None)
                self._late.pop(job.id, None)
                if self._given_back.pop(job.id, None):
                    over.append(job.id)
        self.use.save()
        if over:
            self._store.forget_jobs(over)

    def restart(self, hot: Sequence[Job]) -> None:
        """Forget jobs that are not `hot` any more: they ended or were removed while nothing followed the chain."""
        self._given_back = self._store.given_back()
        kept = {job.id for job in hot}
        gone = [job_id for job_id in {*self.hot, *self._given_back} if job_id not in kept]
        for job_id in gone:
            self.hot.pop(job_id, None)
            self._given_back.pop(job_id, None)
            self._estimates.pop(job_id, None)
        self._store.forget_jobs(gone)

    def took_back(self, job_id: int, provider: str, reason: str) -> None:
        """Note why a job was taken from a provider. The next report of the job counts it."""
        self._late[job_id] = provider, reason

    def now(self) -> float:
        """Unix seconds, by the clock of refusals."""
        return self._clock()

    def expect_start(self, job_id: int, at: int) -> None:
        """Note the estimated start (unix seconds) of an assigned job."""
        if at:
            self._estimates[job_id] = at

    def _note_given_back(self, before: Job | None, job: Job) -> None:
        who = job.last_refuser
        if job.status is not JobStatus.PENDING or who is None:
            return
        known = self._given_back.get(job.id, [])
        if before is None:
            if any(one.provider == who for one in known):
                return
        elif before.status is JobStatus.PENDING and before.last_refuser == who:
            return
        taken_from, why = self._late.pop(job.id, ("", ""))
        reason = why if taken_from == who else None
        entry = GivenBack(job.id, who, self._clock(), reason)
        self._store.add_given_back(entry.job_id, entry.provider, entry.at, entry.reason)
        self._given_back.setdefault(job.id, []).append(entry)
        self._count(who, Reliability(refused=1) if reason is None else Reliability(late=1))

    def _note_end(self, before: Job | None, job: Job) -> None:
        if before is None or job.provider is None:
            return
        if job.status.cold:
            self._metrics.earned(job)
        if job.status in SERVED:
            self._count(job.provider, Reliability(served=1))
        elif job.status is JobStatus.PANICKED:
            self._count(job.provider, Reliability(panicked=1))

    def _note_start(self, job: Job) -> None:
        if job.started_at and (estimate := self._estimates.pop(job.id, 0)):
            self._metrics.started(job.started_at - estimate)

    # -- queries -----------------------------------------------------------------------------

    def given_back(self, job_id: int) -> Sequence[GivenBack]:
        """Return the returns of the job so far, oldest first."""
        return self._given_back.get(job_id, ())

    def explain(self, entry: GivenBack, reason: str, *, excused: bool = False) -> None:
        """Note the reason that a provider gave. If it is `excused`, the return does not count against it."""
        if excused:
            self._count(entry.provider, Reliability(refused=-1))
        self._store.explain_given_back(entry.job_id, entry.provider, reason)
        known = self._given_back.get(entry.job_id, [])
        known[:] = [GivenBack(one.job_id, one.provider, one.at, reason) if one == entry else one for one in known]

    def record(self, provider: str, at_start: Reliability | None = None) -> Reliability:
        """Return how reliable a provider was lately. `at_start` is its record when this process first asks."""
        now = self._clock()
        if provider not in self._records:
            self._records[provider] = at_start or Reliability(), now
        counts, at = self._records[provider]
        return counts.decayed(now - at, self._half_life_s)

    def _count(self, provider: str, event: Reliability) -> None:
        now = self.record(provider)
        sums = Reliability(
            now.served + event.served, now.refused + event.refused, now.panicked + event.panicked, now.late + event.late
        )
        self._records[provider] = sums, self._clock()
