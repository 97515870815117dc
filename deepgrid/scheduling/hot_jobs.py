"""What jobs of the chain occupy at their clusters, and how reliable a provider's counters show it to be. Pure."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.market import HotJob, Reliability

MOST_EVENTS = 50.0  # what the counters of a provider's whole life count as, at most


def hot_job(job: Job, now: int) -> HotJob:
    """An assigned, claimed or running job, with the minutes that it may still run at `now` (unix seconds)."""
    needs, left = job.definition, job.granted_minutes
    if job.status is JobStatus.RUNNING:
        left = max(1, left - max(0, now - job.started_at) // 60)
    return HotJob(
        job.id, needs.ntasks, needs.cpus_per_task, needs.mem_per_cpu_mb, needs.gpus, left, job.status
    )  # fmt: skip


def reliability_of(started: int, refused: int, panicked: int, timed_out: int) -> Reliability:
    """A provider's whole life as if it had been lately, shortened to MOST_EVENTS."""
    counts = (started, refused, panicked, timed_out)
    share = min(1.0, MOST_EVENTS / max(1, sum(counts)))
    return Reliability(*(count * share for count in counts))
