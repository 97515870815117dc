"""What a job looks like, as the client read it last. The async and the sync job share it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from deepgrid.client.display.story import exit_status_of, outcome, own_exit_status, waiting_words
from deepgrid.client.job_values import Bill, Remark, bill_of, credits_of, moment_of
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of a job. `remarks` is None if the services were not asked or did not answer."""

    job: ChainJob
    cluster: str = ""
    remarks: tuple[Remark, ...] | None = None


class JobView:
    """The attributes of a job. `_seen` is what the client read last."""

    @property
    def _seen(self) -> Seen:
        raise NotImplementedError

    @property
    def id(self) -> int:
        """Number of the job."""
        return self._seen.job.id

    @property
    def name(self) -> str:
        """Name of the job. Its customer chose it."""
        return self._seen.job.name

    @property
    def status(self) -> JobStatus:
        """State of the job; `status.words` says it in words."""
        return self._seen.job.status

    @property
    def over(self) -> bool:
        """Whether the job is over and its bill final."""
        return self._seen.job.status.cold

    @property
    def customer(self) -> str:
        """Address of the customer."""
        return self._seen.job.customer

    @property
    def cluster(self) -> str:
        """Name of the cluster; empty while none is assigned."""
        return self._seen.cluster

    @property
    def provider(self) -> str | None:
        """Address of the cluster's provider; None while no cluster is assigned."""
        return self._seen.job.provider

    @property
    def waits_for(self) -> str:
        """What the job waits for, and why; empty while it runs and when it is over."""
        return waiting_words(self._seen.job, self._seen.cluster, self._seen.remarks)

    @property
    def remarks(self) -> tuple[Remark, ...] | None:
        """Remarks of the grid on the job, oldest first; None if the services did not answer."""
        return self._seen.remarks

    @property
    def outcome(self) -> str:
        """How the job ended, in words; empty until then."""
        return outcome(self._seen.job) if self.over else ""

    @property
    def exit_code(self) -> int | None:
        """Exit status as a shell gives it: 3, or 137 after signal 9. None if it has none."""
        if not self.over or (not self._seen.job.exit_status and self.status is not JobStatus.FINISHED):
            return None
        return own_exit_status(self._seen.job.exit_status)

    @property
    def exit_status(self) -> int | None:
        """Exit status of `dps` for this job: the job's own, or one for its final state. None until it is over."""
        return exit_status_of(self._seen.job) if self.over else None

    @property
    def bill(self) -> Bill:
        """The bill of a job that is over.

        Raises:
            InputError: The job is not over.
        """
        if not self.over:
            raise InputError(
                f"Job {self.id} has no bill yet: it is {self.status.words}.", next_step="Wait for it first."
            )
        return bill_of(self._seen.job)

    @property
    def locked(self) -> Decimal:
        """Credits that are, or were, locked for the job."""
        return credits_of(self._seen.job.locked_wei)

    @property
    def held(self) -> Decimal:
        """Credits that the contract still holds for the job; 0 when it is over."""
        return credits_of(self._seen.job.held_wei)

    @property
    def held_until(self) -> datetime | None:
        """When a further `cancel` returns the credits that are held, if the cluster reports nothing before.

        None unless a cancel was requested.
        """
        return moment_of(self._seen.job.held_until)

    @property
    def rate(self) -> Decimal | None:
        """Credits per minute; None while no cluster is assigned."""
        return credits_of(self._seen.job.rate_wei_per_minute) if self._seen.job.provider else None

    @property
    def submitted(self) -> datetime | None:
        """When the job was requested."""
        return moment_of(self._seen.job.submitted_at)

    @property
    def started(self) -> datetime | None:
        """When its cluster reported that it runs; None if it never ran."""
        return moment_of(self._seen.job.started_at)

    @property
    def ended(self) -> datetime | None:
        """When it was settled; None until then."""
        return moment_of(self._seen.job.ended_at)

    @property
    def on_chain(self) -> ChainJob:
        """All values of the job on chain: amounts in wei, times in unix seconds, memory in MB."""
        return self._seen.job

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, {self.name!r}, {self.status.words})"
