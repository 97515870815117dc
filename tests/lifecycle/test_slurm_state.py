"""The facts that one query of a job at Slurm gives."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.slurm_state import ABSENT, UNKNOWN, Phase, SlurmJob


@pytest.mark.parametrize(
    ("job", "placed"),
    [
        (UNKNOWN, False),
        (ABSENT, False),
        (SlurmJob(Phase.QUEUED, 5, "PENDING"), False),
        (SlurmJob(Phase.QUEUED, 5, "PENDING", reason="None"), False),  # the scheduler has not reached it
        (SlurmJob(Phase.QUEUED, 5, "PENDING", reason="Resources"), True),
        (SlurmJob(Phase.RUNNING, 5, "RUNNING", reason="None"), True),
        (SlurmJob(Phase.ENDED, 5, "COMPLETED"), True),
    ],
)
def test_a_job_is_placed_once_it_was_started_or_has_a_reason_to_wait(job: SlurmJob, placed: bool) -> None:
    assert job.placed is placed
