"""Rounds of the meta-scheduler: pending jobs x clusters -> assignments, and a reason for each job that waits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.market import Market, Round, Row, SchedulerSettings, Usage


class Scheduler:
    """Decides on pending jobs, round after round. Keeps what did not change between rounds."""

    def __init__(self, settings: SchedulerSettings | None = None) -> None:
        self.settings = settings or SchedulerSettings()

    def round(
        self, jobs: Sequence[Job], market: Market, refusals: Mapping[int, Mapping[str, str]] | None = None,
        usage: Usage | None = None,
    ) -> Round:  # fmt: skip
        """Decide on each pending job.

        Args:
            jobs: The pending jobs, in any order.
            market: The clusters and the time.
            refusals: Per job id, the addresses of providers that gave it back lately, each with the reason.
            usage: Past and present use of the grid per customer.

        Returns:
            One assignment or one reason to wait per job, and the customers' shares.
        """
        raise NotImplementedError

    def explain(self, job: Job, market: Market, refusals: Mapping[str, str] | None = None) -> list[Row]:
        """One row per cluster: whether it can take the job or why not, price, minutes, estimated start."""
        raise NotImplementedError
