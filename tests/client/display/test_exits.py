"""`dps submit -e` ends with the exit status of the job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.client.display.story import exit_status_of
from deepgrid.lifecycle.exits import exit_words
from deepgrid.lifecycle.states import JobStatus
from tests.cli.support import JOB


@pytest.mark.parametrize(
    ("status", "wait_status", "expected", "words"),
    [
        (JobStatus.FINISHED, 0, 0, "exit status 0"),
        (JobStatus.FAILED, 256, 1, "exit status 1"),
        (JobStatus.FAILED, 768, 3, "exit status 3"),
        (JobStatus.FAILED, 35072, 137, "exit status 137"),
        (JobStatus.FAILED, 9, 137, "killed by signal 9"),
        (JobStatus.FAILED, 0, 1, ""),
        (JobStatus.CANCELLED, 0, 125, ""),
        (JobStatus.CANCELLED, 15, 143, "killed by signal 15"),
        (JobStatus.OUT_OF_CREDITS, 0, 124, ""),
        (JobStatus.PANICKED, 0, 123, ""),
    ],
)
def test_exit_status(status: JobStatus, wait_status: int, expected: int, words: str) -> None:
    job = replace(JOB, status=status, exit_status=wait_status)
    assert (exit_status_of(job), exit_words(job)) == (expected, words)


@pytest.mark.parametrize("status", [status for status in JobStatus if status.cold and status is not JobStatus.FINISHED])
@pytest.mark.parametrize("wait_status", [0, 128, 255, 256, 2**31, 2**40])
def test_a_job_that_did_not_finish_never_counts_as_success(status: JobStatus, wait_status: int) -> None:
    assert 0 < exit_status_of(replace(JOB, status=status, exit_status=wait_status)) < 256
