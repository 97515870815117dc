"""The possible actions on a job, and its description, at each stage of an unanswered cancellation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from deepgrid.client import AsyncJob
from deepgrid.lifecycle.job import HELD_FOR_S, Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.tui.details import cancelled_words, why_not_cancel, why_not_top_up
from tests.cli.support import JOB

CREDIT = 10**18
REQUESTED = 1_800_000_000
ANSWER_MINUTES, ANSWER_S, FEE_MINUTES = 10, 600, 5
HELD = "4 credits stay locked until 2027-01-16 08:00:00 UTC, or until the cluster reports; 6 credits came back"
ALL_HELD = "all 10 credits stay locked until 2027-01-16 08:00:00 UTC, or until the cluster reports. After that time"
ASKED = replace(
    JOB, id=7, status=JobStatus.RUNNING, locked_wei=10 * CREDIT, has_cancel_request=True, cancel_requested_at=REQUESTED,
    started_at=REQUESTED - 600, rate_wei_per_minute=CREDIT // 5,
)  # fmt: skip
RELEASED = replace(ASKED, released_wei=6 * CREDIT)
LATE = replace(ASKED, started_at=REQUESTED - 2400)  # its answer is due when the bought time ends


def seen(job: Job) -> AsyncJob:
    return AsyncJob(cast(Any, None), job, cluster="alpha")


@pytest.mark.parametrize(
    ("job", "passed_s", "why"),
    [
        (replace(ASKED, has_cancel_request=False), 0, ""),
        (ASKED, ANSWER_S - 1, "that was requested already; its cluster has until 2027-01-15 08:10:00 UTC to answer"),
        (ASKED, ANSWER_S, ""),
        (RELEASED, HELD_FOR_S - 1, HELD),
        (LATE, ANSWER_S, ALL_HELD),
        (LATE, HELD_FOR_S - 1, ALL_HELD),
        (LATE, HELD_FOR_S, ""),
        (RELEASED, HELD_FOR_S, ""),
        (ASKED, HELD_FOR_S, ""),
        (replace(RELEASED, status=JobStatus.CANCELLED), HELD_FOR_S, "it is over"),
    ],
)
def test_when_a_job_can_be_cancelled(job: Job, passed_s: int, why: str) -> None:
    found = why_not_cancel(seen(job), ANSWER_MINUTES, FEE_MINUTES, REQUESTED + passed_s)
    assert found.startswith(why) if why else not found


def test_a_longer_time_for_the_answer_does_not_delay_the_end() -> None:
    assert why_not_cancel(seen(ASKED), 7 * 1440, FEE_MINUTES, REQUESTED + HELD_FOR_S) == ""


def test_a_release_is_told_with_what_stays_locked() -> None:
    assert cancelled_words(seen(ASKED)) == "The cluster of job 7 was asked to stop it."
    assert HELD in cancelled_words(seen(RELEASED))
    assert HELD in seen(RELEASED).waits_for


def test_a_job_with_a_cancel_request_takes_no_top_up() -> None:
    assert why_not_top_up(seen(ASKED)) == "its cancellation was requested"
    assert why_not_top_up(seen(replace(ASKED, has_cancel_request=False))) == ""
