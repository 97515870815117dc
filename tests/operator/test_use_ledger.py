"""The operator's accounts of past use count each end of a job once, with or without rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.store import OperatorStore
from deepgrid.operator.use_ledger import UseLedger
from deepgrid.scheduling.market import SchedulerSettings
from tests.scheduling.markets import NOW, pending

S = JobStatus
HOUR_S = 3600


def assigned(job_id: int = 1, **changes: object) -> Job:
    values = {"status": S.META_SCHEDULED, "provider": "0xa1pha", "assigned_at": NOW, "started_at": 0, **changes}
    return replace(pending(job_id, cpus=8, customer="0xc"), **values)  # type: ignore[arg-type]


def ended(job: Job, status: JobStatus = S.FINISHED, after_s: int = HOUR_S, **changes: object) -> Job:
    return replace(job, status=status, ended_at=NOW + after_s, **changes)  # type: ignore[arg-type]


def ledger(folder: Path) -> UseLedger:
    return UseLedger(OperatorStore(folder / "rounds.sqlite"), SchedulerSettings())


def cpus(one: UseLedger) -> float:
    return one.accounts()["0xc"].past.cpus


def test_a_job_counts_that_ended_while_no_job_was_pending(tmp_path: Path) -> None:
    """Past use once came only from rounds with non-zero use, and there were none."""
    one = ledger(tmp_path)
    one.note(assigned(), ended(assigned()), NOW)
    assert cpus(one) == pytest.approx(8 * (1 - 0.5 ** (1 / 24)))


def test_an_end_counts_once_and_also_after_a_restart(tmp_path: Path) -> None:
    one, jobs = ledger(tmp_path), [assigned(number) for number in (1, 2)]
    one.note(jobs[0], ended(jobs[0]), NOW)
    one.save()
    again = ledger(tmp_path)
    again.note(None, ended(jobs[0]), NOW)
    assert cpus(again) == cpus(one)
    again.note(None, ended(jobs[1], after_s=2 * HOUR_S), NOW)
    assert cpus(again) > 2 * cpus(one)


def test_a_job_that_is_given_back_counts_until_then(tmp_path: Path) -> None:
    one = ledger(tmp_path)
    one.note(assigned(), replace(assigned(), status=S.PENDING, provider=None, assigned_at=0), NOW + 60)
    assert cpus(one) == pytest.approx(8 * (1 - 0.5 ** (60 / 86_400)))


@pytest.mark.parametrize(
    ("changes", "cancels"),
    [
        ({"status": S.CANCELLED, "has_cancel_request": True}, 1),
        ({"status": S.CANCELLED, "has_cancel_request": True, "started_at": NOW + 1}, 0),
        ({"status": S.CANCELLED}, 0),
        ({"status": S.PANICKED}, 0),
    ],
    ids=["by its customer", "after its start", "by its provider", "panicked"],
)
def test_only_what_the_customer_cancels_before_it_ran_is_a_cancel(
    tmp_path: Path, changes: dict[str, object], cancels: int
) -> None:
    one = ledger(tmp_path)
    one.note(assigned(), replace(ended(assigned()), **changes), NOW)  # type: ignore[arg-type]
    assert one.accounts()["0xc"].cancels == cancels


def waiting(job_id: int = 1) -> Job:
    return pending(job_id, cpus=8, customer="0xc")


@pytest.mark.parametrize(
    ("end", "cancels"), [({"has_cancel_request": True}, 1), ({}, 0)], ids=["by its customer", "given up"]
)
def test_a_cancelled_job_counts_for_the_time_of_its_reservation(
    tmp_path: Path, end: dict[str, object], cancels: int
) -> None:
    """It once counted nothing, although others could not start before it."""
    one = ledger(tmp_path)
    one.note_reservations([1], NOW)
    one.note_reservations([], NOW + 60)
    one.note_reservations([1], NOW + 600)
    one.note(waiting(), ended(waiting(), S.CANCELLED, after_s=660, **end), NOW)
    assert cpus(one) == pytest.approx(8 * (1 - 0.5 ** (120 / 86_400)))
    assert one.accounts()["0xc"].cancels == cancels


def test_a_job_cancelled_after_its_assignment_counts_from_its_reservation_on(tmp_path: Path) -> None:
    one, job = ledger(tmp_path), assigned(assigned_at=NOW + 60)
    one.note_reservations([1], NOW)
    one.note_reservations([], NOW + 60)
    one.note(waiting(), job, NOW)
    one.note(job, ended(job, S.CANCELLED, after_s=100, has_cancel_request=True), NOW)
    assert cpus(one) == pytest.approx(8 * (1 - 0.5 ** (100 / 86_400)), rel=1e-3)
    assert one.accounts()["0xc"].cancels == 1


@pytest.mark.parametrize("end", [S.FINISHED, S.PANICKED])
def test_a_reservation_of_a_job_that_was_not_cancelled_is_no_use(tmp_path: Path, end: JobStatus) -> None:
    one, job = ledger(tmp_path), assigned(assigned_at=NOW + 60, started_at=NOW + 60)
    one.note_reservations([1], NOW)
    one.note(waiting(), job, NOW)
    one.note(job, ended(job, end, after_s=120), NOW)
    assert cpus(one) == pytest.approx(8 * (1 - 0.5 ** (60 / 86_400)))


def test_a_cancelled_job_without_a_reservation_is_free(tmp_path: Path) -> None:
    one = ledger(tmp_path)
    one.note_reservations([2], NOW)
    one.note(waiting(), ended(waiting(), S.CANCELLED, has_cancel_request=True), NOW)
    assert one.accounts() == {}


def test_a_customer_with_nothing_left_to_remember_is_forgotten(tmp_path: Path) -> None:
    one = ledger(tmp_path)
    one.note(assigned(), ended(assigned()), NOW)
    one.save()
    one.forget_negligible(NOW + 24 * HOUR_S)
    assert one.accounts()
    one.forget_negligible(NOW + 60 * 24 * HOUR_S)
    assert ledger(tmp_path).accounts() == one.accounts() == {}
