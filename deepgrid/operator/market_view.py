"""The market as a round sees it, made from the hot jobs and the providers. Pure; runs in a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import Job, Provider
from deepgrid.scheduling.market import ClusterState, HotJob, Market, Reliability
from deepgrid.scheduling.speed import measured_speeds


def market_of(
    hot: Sequence[Job], providers: Sequence[Provider], records: Mapping[str, Reliability], now: int
) -> Market:
    """The clusters in force, each with its hot jobs: running ones first, then its queue in order."""
    busy: dict[str, list[HotJob]] = {}
    for job in sorted(hot, key=lambda job: (-job.status, job.assigned_at, job.id)):
        if job.provider is not None:
            busy.setdefault(job.provider, []).append(HotJob.of(job, now))
    return Market(
        [
            ClusterState(one, busy.get(one.address, ()), records.get(one.address, Reliability()), measured_speeds(one))
            for one in providers
            if one.in_force
        ],
        now,
    )
