"""The results of a sweep's jobs, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.client.display.html import summary_html
from deepgrid.client.job_values import Bill, Parameters, credits_of
from deepgrid.errors import GridError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob

NOT_REQUESTED = "not requested"

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Unsubmitted:
    """A parameter set without a job, because its definition was refused or the sweep was cancelled. It costs nothing.

    It has the attributes that programs read from the jobs in results.

    Attributes:
        parameters: The parameters.
        error: Why there is no job.
        status: `FAILED`, or `CANCELLED`.
    """

    parameters: Parameters
    error: GridError
    status: JobStatus = JobStatus.FAILED

    @property
    def id(self) -> int:
        """Always 0. Jobs are numbered from 1."""
        return 0

    @property
    def over(self) -> bool:
        """Always True, because there will be no job."""
        return True

    @property
    def exit_code(self) -> None:
        """Always None, because nothing ran."""

    @property
    def outcome(self) -> str:
        """Why there is no job, in words."""
        return str(self.error)

    @property
    def bill(self) -> Bill:
        """A bill of 0."""
        return Bill(_ZERO, None, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of the jobs in a set. `str` gives a table.

    Attributes:
        jobs: Number of jobs.
        states: Number of jobs by the name of their state; `not requested` counts parameter sets without a job.
        cost: Cost of the jobs that are over, in credits.
        refunds: Credits that were returned.
        locked: Credits that are locked now for the other jobs.
    """

    jobs: int
    states: Mapping[str, int]
    cost: Decimal
    refunds: Decimal
    locked: Decimal

    def _repr_html_(self) -> str:
        return summary_html(self.jobs, self.states, self.cost, self.refunds, self.locked)

    def __str__(self) -> str:
        rows = [("jobs", f"{self.jobs:,}"), *((words, f"{count:,}") for words, count in self.states.items())]
        money = (("cost", self.cost), ("refunded", self.refunds), ("locked", self.locked))
        rows += [(name, f"{amount:,f} credits") for name, amount in money]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def summary_of(jobs: Iterable[AsyncJob | None]) -> Summary:
    """Return the summary of these jobs. None represents a job that was not requested."""
    counts: Counter[str] = Counter()
    cost = refunds = locked = 0
    for job in jobs:
        counts[NOT_REQUESTED if job is None else job.status.words] += 1
        if job is not None and job.over:
            cost += job.on_chain.final_cost_wei
            refunds += job.on_chain.returned_wei
        elif job is not None:
            refunds += job.on_chain.released_wei
            locked += job.on_chain.held_wei
    order = [*(status.words for status in JobStatus), NOT_REQUESTED]
    states = {words: counts[words] for words in order if counts[words]}
    return Summary(counts.total(), states, credits_of(cost), credits_of(refunds), credits_of(locked))
