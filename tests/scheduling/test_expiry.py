"""Timeouts of providers: unclaimed jobs are taken back soon, claimed ones only after a long silence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.job import Hardware, Job, Label, Prices, Provider, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.expiry import Patience, TakeBack, gives_up_at, in_turns, overdue
from tests.lifecycle.support import JOB as CLAIMED

S = JobStatus
HOUR_S = 3600
NOW = 10_000_000
PATIENCE = Patience(claim_minutes=10, silent_hours=24)
PROVIDER = Provider(
    address="0xp", hardware=Hardware((0,), (4,), (4000,)), prices=Prices(0, 1, 0), labels=(Label("name", "alpha"),),
    approved=True, banned=False,
)  # fmt: skip
JOB = replace(CLAIMED, provider="0xp", granted_minutes=60)
ASSIGNED = replace(JOB, status=S.META_SCHEDULED, claimed_at=0)
BANNED = {"0xp": replace(PROVIDER, banned=True)}
THERE = {"0xp": PROVIDER}
REMOVED: dict[str, Provider] = {}


def assigned(ago_s: int) -> Job:
    return replace(ASSIGNED, assigned_at=NOW - ago_s)


def claimed(ago_s: int) -> Job:
    return replace(JOB, status=S.SCHEDULED, claimed_at=NOW - ago_s)


def running(ago_s: int) -> Job:
    return replace(JOB, status=S.RUNNING, started_at=NOW - ago_s)


def cancelling(job: Job, ago_s: int) -> Job:
    return replace(job, has_cancel_request=True, cancel_requested_at=NOW - ago_s)


@pytest.mark.parametrize(
    ("job", "providers", "taken"),
    [
        (assigned(599), THERE, False),
        (assigned(600), THERE, True),
        (assigned(599), BANNED, False),  # the contract allows it no earlier
        (claimed(2 * HOUR_S), THERE, False),  # it may wait in a long queue
        (claimed(25 * HOUR_S - 1), THERE, False),
        (claimed(25 * HOUR_S), THERE, True),
        (claimed(1), BANNED, True),
        (claimed(1), REMOVED, True),
        (running(25 * HOUR_S - 1), THERE, False),
        (running(25 * HOUR_S), THERE, True),
        (running(25 * HOUR_S - 1), BANNED, False),  # it may still report
        (running(25 * HOUR_S), BANNED, True),
        (running(25 * HOUR_S), REMOVED, True),
        (cancelling(running(60), 2 * HOUR_S), THERE, False),
        (cancelling(running(60), 24 * HOUR_S), THERE, True),
        (cancelling(running(60), 24 * HOUR_S - 1), BANNED, False),
        (cancelling(running(60), 24 * HOUR_S), BANNED, True),
        (cancelling(claimed(60), 24 * HOUR_S - 1), BANNED, False),  # it may have run without a report
        (cancelling(claimed(60), 24 * HOUR_S), BANNED, True),
        (replace(ASSIGNED, status=S.PENDING, provider=None), THERE, False),
        (replace(JOB, status=S.FINISHED), BANNED, False),
    ],
)
def test_when_a_job_is_taken_back(job: Job, providers: dict[str, Provider], taken: bool) -> None:
    assert [one.job for one in overdue([job], providers, PATIENCE, NOW)] == ([job] if taken else [])


def test_a_ban_ends_running_jobs_where_the_operator_wants_that() -> None:
    stern = replace(PATIENCE, end_running_of_banned=True)
    assert only(running(1), BANNED, stern).panic  # the contract does not let it time out yet
    assert not only(running(25 * HOUR_S), BANNED, stern).panic
    assert overdue([running(1)], THERE, stern, NOW) == []


def test_a_provider_may_be_silent_for_the_hours_that_the_operator_sets() -> None:
    patient = replace(PATIENCE, silent_hours=48)
    assert overdue([claimed(49 * HOUR_S - 1)], THERE, patient, NOW) == []
    assert "silent for 48 h since its time was over" in only(claimed(49 * HOUR_S), THERE, patient).reason


@pytest.mark.parametrize(
    ("job", "providers", "reason"),
    [
        (assigned(600), THERE, "alpha did not claim it within 10 min; the job waits for another cluster"),
        (claimed(1), BANNED, "alpha is barred from the grid; the job waits for another cluster"),
        (claimed(1), REMOVED, "0xp has left the grid; the job waits for another cluster"),
        (
            cancelling(claimed(1), 24 * HOUR_S),
            BANNED,
            "alpha is barred from the grid; the job is cancelled with a full refund",
        ),
        (
            running(25 * HOUR_S),
            THERE,
            "alpha has been silent for 24 h since its time was over; the job is ended with a full refund",
        ),
        (
            cancelling(running(60), 24 * HOUR_S),
            THERE,
            "alpha has been silent for 24 h since its cancellation was requested; the job is ended with a full refund",
        ),
    ],
)
def test_the_customer_gets_the_reason_and_the_next_step(job: Job, providers: dict[str, Provider], reason: str) -> None:
    assert only(job, providers, PATIENCE).reason == reason


def test_the_oldest_job_comes_first() -> None:
    jobs = [replace(assigned(700), id=number) for number in (9, 3, 5)]
    assert [taken.job.id for taken in overdue(jobs, THERE, PATIENCE, NOW)] == [3, 5, 9]


def only(job: Job, providers: dict[str, Provider], patience: Patience) -> TakeBack:
    (taken,) = overdue([job], providers, patience, NOW)
    return taken


def test_give_ups_of_five_minutes_come_together_and_never_early() -> None:
    def due(at: int) -> int:
        return gives_up_at(replace(JOB, wishes=Wishes(give_up_at=at)))

    times = {at: due(at) for at in range(NOW, NOW + 900)}
    assert all(60 <= then - at < 360 and then % 300 == 0 for at, then in times.items())
    assert len(set(times.values())) <= 4
    assert due(0) == 0


def test_customers_take_turns() -> None:
    flood = [replace(JOB, id=number, customer="0xf") for number in range(1, 6)]
    others = [replace(JOB, id=number, customer=who) for number, who in ((6, "0xa"), (7, "0xb"), (8, "0xa"))]
    assert [job.id for job in in_turns([*reversed(flood), *others])] == [1, 6, 7, 2, 8, 3, 4, 5]
