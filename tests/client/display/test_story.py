"""The story of a job is true: its claims, its end, its cost so far, and whether it was given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.billing.entries import Settlement
from deepgrid.chain.history import Transition
from deepgrid.client.display.record import bill_as_json, bill_rows, running_cost
from deepgrid.client.display.story import (
    cancel_words,
    conditions,
    outcome,
    resources_words,
    steps_of,
    whereabouts,
    wishes,
)
from deepgrid.client.display.text import moment
from deepgrid.lifecycle.job import Affinity, JobDefinition, Label, Prefer, Wishes
from deepgrid.lifecycle.states import JobStatus
from tests.cli.support import JOB

CREDIT = 10**18
S = JobStatus


def _history(*states: JobStatus) -> list[Transition]:
    befores = [None, *states[:-1]]
    return [Transition(before, after, 0, 0, "0x") for before, after in zip(befores, states, strict=True)]


def test_a_cluster_is_not_named_for_what_an_earlier_one_did() -> None:
    job = replace(JOB, status=S.SCHEDULED, locked_wei=100 * CREDIT, granted_minutes=20)
    history = _history(S.PENDING, S.META_SCHEDULED, S.SCHEDULED, S.PENDING, S.META_SCHEDULED, S.SCHEDULED)
    assert [step.words for step in steps_of(history, job, "beta")] == [
        "100 credits locked", "", "", "again: the cluster gave it back", "to beta",
        "claimed by beta, for 20 minutes at most",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "wait_status", "error", "words"),
    [
        (S.FINISHED, 0, "", "exit status 0"),
        (S.FAILED, 768, "", "exit status 3"),
        (S.FAILED, 0, "node failure", "node failure"),
        (S.OUT_OF_CREDITS, 15, "time limit", "killed by signal 15: time limit"),
        (S.CANCELLED, 0, "", ""),
    ],
)
def test_outcome(status: JobStatus, wait_status: int, error: str, words: str) -> None:
    assert outcome(replace(JOB, status=status, exit_status=wait_status, last_error=error)) == words


@pytest.mark.parametrize("status", [status for status in JobStatus if status.hot])
def test_what_a_job_waits_for(status: JobStatus) -> None:
    assert bool(whereabouts(replace(JOB, status=status), "alpha")) is (status is not S.RUNNING)
    assert "asked to stop" in whereabouts(replace(JOB, status=status, has_cancel_request=True), "alpha")


@pytest.mark.parametrize(("any_end", "verb"), [(False, "finish"), (True, "end")])
def test_a_chained_job_waits_for_the_earlier_one(any_end: bool, verb: str) -> None:
    job = replace(JOB, status=S.PENDING, wishes=Wishes(after_job=12, after_any=any_end))
    assert whereabouts(job, "") == f"job 12 must {verb} first, then a cluster is found"
    assert "12" not in whereabouts(replace(job, status=S.META_SCHEDULED), "alpha")


UNANSWERED = replace(
    JOB, status=S.RUNNING, locked_wei=10 * CREDIT, has_cancel_request=True, cancel_requested_at=1_800_000_000, id=7,
    started_at=1_799_999_400, rate_wei_per_minute=CREDIT // 5, fee_minutes=5,
)  # fmt: skip


def test_what_stays_locked_after_an_unanswered_cancel_is_said_with_its_end() -> None:
    released = replace(UNANSWERED, released_wei=6 * CREDIT)
    assert whereabouts(released, "alpha") == (
        "to be cancelled: alpha has been asked to stop it; 4 credits stay locked until 2027-01-16 08:00:00 UTC,"
        " or until the cluster reports; 6 credits came back. After that time, cancel it again"
    )
    assert cancel_words(released) == (
        "job 7 is running: its cluster did not answer; 4 credits stay locked until 2027-01-16 08:00:00 UTC, or until"
        " the cluster reports; 6 credits came back. After that time, cancel it again."
    )


def test_a_cancel_that_can_return_nothing_early_says_so() -> None:
    """The answer is due after the bought time."""
    late = replace(UNANSWERED, started_at=UNANSWERED.cancel_requested_at - 40 * 60)
    assert cancel_words(late) == (
        "job 7 is running: its cluster has been asked to stop it, and settles what it ran (at least 5 minutes if it"
        " ran); all 10 credits stay locked until 2027-01-16 08:00:00 UTC, or until the cluster reports. After that"
        " time, cancel it again."
    )


def test_a_cancel_says_what_a_further_one_does() -> None:
    assert cancel_words(UNANSWERED) == (
        "job 7 is running: its cluster has been asked to stop it, and settles what it ran (at least 5 minutes if it"
        " ran). If it is not settled in 10 minutes, cancel it again: then everything beyond that time comes back."
        " The rest stays locked until 2027-01-16 08:00:00 UTC, or until the cluster reports."
    )
    over = replace(UNANSWERED, status=S.CANCELLED, released_wei=6 * CREDIT, final_cost_wei=CREDIT)
    assert cancel_words(over) == "job 7 is cancelled; 9 credits came back."


def test_what_a_job_asks_for_is_said_as_it_is_written() -> None:
    definition = JobDefinition(
        gpus=1, mem_per_cpu_mb=128, cpus_per_task=4, ntasks=2, definition_hash="", uses=(Label("os", "linux"),),
        affinity=(Affinity("mem", ">=", "4000"), Affinity("gpu", "in", "nvidia")),
    )  # fmt: skip
    job = replace(JOB, definition=definition)
    assert resources_words(job) == "2 tasks of 4 CPUs, 128 MB per CPU, 1 GPU"
    assert conditions(job) == ["os=linux", "mem>=4000", "gpu:in:nvidia"]


def test_wishes_are_said_and_so_is_that_there_are_none() -> None:
    assert wishes(JOB) == []
    end = 2**40 - 1  # the customer may write any number that the contract holds
    kept = Wishes(max_rate_wei=5 * CREDIT // 2, min_minutes=90, give_up_at=end, prefer=Prefer.START)
    assert wishes(replace(JOB, wishes=kept)) == [
        "at most 2.5 credits per minute", "at least 90 minutes", "start first",
        f"given up if no cluster has it by {moment(end)}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "cost"),
    [
        (1000, "0.5 credits for 1 minute, of 10 minutes paid for"),
        (1061, "1 credits for 2 minutes, of 10 minutes paid for"),
        (990, "0.5 credits for 1 minute, of 10 minutes paid for"),
        (9999, "5 credits for 10 minutes, of 10 minutes paid for"),
    ],
)
def test_the_cost_so_far_counts_started_minutes_up_to_the_limit(now: int, cost: str) -> None:
    job = replace(
        JOB, status=S.RUNNING, started_at=1000, granted_minutes=10, rate_wei_per_minute=CREDIT // 2,
        locked_wei=5 * CREDIT,
    )  # fmt: skip
    assert running_cost(job, now) == cost


def test_the_refund_of_a_bill_has_what_came_back_before_the_end() -> None:
    over = replace(
        UNANSWERED,
        status=S.CANCELLED,
        released_wei=6 * CREDIT,
        final_cost_wei=CREDIT,
        granted_minutes=50,
        cut_percent=20,
    )
    settlement = Settlement(7, "0x2", "0x1", 5, CREDIT * 4 // 5, CREDIT // 5, 3 * CREDIT, 0, 0, "0x")
    assert ("refund", "9") in bill_rows(over, settlement)
    told = bill_as_json(over, settlement)
    assert told is not None
    assert told["refunded_wei"] == str(9 * CREDIT)
    assert sum(int(told[part]) for part in ("paid_wei", "cut_wei", "refunded_wei")) == over.locked_wei
