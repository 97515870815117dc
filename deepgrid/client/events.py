"""The events of a job's live view, as `AsyncJob.events` gives them. They are frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from deepgrid.client.display.exits import exit_status_of
from deepgrid.client.display.record import JobRecord
from deepgrid.client.job_end import bill_of
from deepgrid.client.values.returned import Bill, LogLine, Remark, Step, ViewMessage, datetime_of


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The job is over. This is the last event of a live view.

    Attributes:
        record: All that is known about the job now.
    """

    record: JobRecord

    @property
    def at(self) -> datetime:
        """When the job was settled."""
        return datetime_of(self.record.job.ended_at)

    @property
    def bill(self) -> Bill:
        """Its bill."""
        return bill_of(self.record.job)

    @property
    def exit_status(self) -> int:
        """Exit status of `dps` for this job: the job's own, or one for its final state."""
        return exit_status_of(self.record.job)


JobEvent = Step | Remark | LogLine | ViewMessage | JobEnd
"""A state that the job reached, a remark of the grid, a line of output, a message of the client, or the end."""
