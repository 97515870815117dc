"""The judge accepts a correct history and names the faults of others. Rounds do not mix allowed outcomes."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.chain.node.contract import Event
from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.observe.run_records import GUARDED
from tests.chaos.batch import Batch
from tests.chaos.fault import Allowed, all_faults, faults_by_module
from tests.chaos.judge import Evidence, by_comment, faults_of
from tests.chaos.kinds import KINDS
from tests.chaos.plan import DEEP, KILLS, OTHERS, REFUSALS, few, many

RATE = 10**17
COMMENT = "deepgrid:1:abcd:7:1000"
JOB = Job(
    id=7, status=JobStatus.FINISHED, customer="c", provider="p", definition=JobDefinition(0, 100, 1, 1, "h"), name="n",
    locked_wei=10 * RATE, final_cost_wei=2 * RATE, submitted_at=1, assigned_at=1, claimed_at=1000, started_at=1001,
    ended_at=1100, cancel_requested_at=0, has_cancel_request=False, rate_wei_per_minute=RATE, cut_percent=20,
    granted_minutes=10, last_refuser=None, delegate_spending=False, last_error="", exit_status=0, fee_minutes=1,
)  # fmt: skip
RAN = Row(5, "0", "COMPLETED", 1001, 1062, name="name", comment=COMMENT)


def settled(
    minutes: int = 2, paid: int = 16 * RATE // 10, cut: int = 4 * RATE // 10, refunded: int = 8 * RATE
) -> Event:
    args = {"billedMinutes": minutes, "paid": paid, "cut": cut, "refunded": refunded}
    return Event("JobSettledEvent", args, 1, "", "", 0)


CLAIM = Event("ClaimJobEvent", {}, 1, "", "", 0)
RIGHT = Evidence(JOB, [settled()], [CLAIM], {COMMENT: [RAN, RAN]}, ["5"], [])


def judged(seen: Evidence, kind: str = "instant", allows: Collection[Allowed] = ()) -> str:
    batch = cast(Batch, SimpleNamespace(kinds={7: KINDS[kind]}, topped_up=set()))
    return "; ".join(faults_of(seen, batch, allows))


def test_a_right_history_passes() -> None:
    assert not judged(RIGHT)


@pytest.mark.parametrize(
    ("wrong", "accusation"),
    [
        ({"job": replace(JOB, status=JobStatus.RUNNING)}, "is running"),
        ({"settlements": []}, "settled 0 times"),
        ({"settlements": [settled(), settled()]}, "settled 2 times"),
        ({"starts": ["5", "5"]}, "ran 2 times for 1 claims"),
        ({"rows": {COMMENT: [RAN, replace(RAN, slurm_id=6)]}}, "Slurm accepted [5, 6]"),
        ({"rows": {COMMENT: [RAN], f"{COMMENT}1": [RAN]}}, "submitted for 2 claims"),
        ({"left": ["RUNNING"]}, "still in Slurm"),
        ({"claims": [CLAIM, CLAIM]}, "claimed 2 times"),
        ({"job": replace(JOB, status=JobStatus.PANICKED)}, "is panicked"),
        ({"job": replace(JOB, exit_status=9)}, "wait status 9"),
        ({"settlements": [settled(minutes=3)]}, "billed 3 minutes for 2"),
        ({"settlements": [settled(refunded=8 * RATE - 1)]}, "are not the locked"),
        ({"job": replace(JOB, final_cost_wei=3 * RATE)}, "cost"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_in_a_history_is_named(wrong: dict[str, Any], accusation: str) -> None:
    assert accusation in judged(replace(RIGHT, **wrong))


def test_a_wrong_bill_is_shown_with_its_evidence() -> None:
    free = replace(JOB, status=JobStatus.FAILED, started_at=0, final_cost_wei=0, exit_status=768)
    bill = settled(minutes=0, paid=0, cut=0, refunded=10 * RATE)
    told = judged(replace(RIGHT, job=free, settlements=[bill]), "exit 3")
    assert "billed 0 minutes for 2" in told
    assert "never started on chain, ended with no error, payloads ['5'], and Slurm has: Row(slurm_id=5" in told


def test_a_run_that_accounting_knows_without_a_comment_counts_once() -> None:
    forgotten = replace(RAN, comment="", state="RUNNING", ended_at=None)
    assert by_comment([RAN, forgotten, RAN]) == RIGHT.rows
    other = replace(forgotten, slurm_id=6)
    rows = by_comment([RAN, other])
    assert rows == {COMMENT: [RAN], "": [other]}
    assert "submitted for 2 claims" in judged(replace(RIGHT, rows=rows))


def test_a_cancelled_job_pays_the_fee_even_if_it_was_forgotten_or_barred_before_its_start() -> None:
    job = replace(JOB, status=JobStatus.CANCELLED, has_cancel_request=True, final_cost_wei=RATE)
    bill = settled(minutes=1, paid=8 * RATE // 10, cut=2 * RATE // 10, refunded=9 * RATE)
    rows = {COMMENT: [replace(RAN, state="CANCELLED", started_at=None)]}
    seen = replace(RIGHT, job=job, settlements=[bill], rows=rows)
    assert not judged(seen, "cancelled")
    assert "billed 1 minutes for 0" in judged(replace(seen, starts=[]), "cancelled")
    barred = {COMMENT: [replace(RAN, state="FAILED", exit_status=GUARDED)]}
    assert not judged(replace(seen, starts=[], rows=barred), "cancelled")
    assert "billed 1 minutes for 0" in judged(replace(seen, job=replace(job, started_at=0)), "cancelled")


def test_a_job_may_fail_because_of_a_step_only_if_srun_reports_it() -> None:
    failed = replace(RIGHT, job=replace(JOB, status=JobStatus.FAILED, exit_status=256))
    said = replace(failed, said="srun: error: Unable to create step for job 5: Unable to contact slurm controller")
    assert "is failed" in judged(failed, allows=[Allowed.STEP])
    assert "is failed" in judged(said)
    assert not judged(said, allows=[Allowed.STEP])
    assert "billed 3 minutes" in judged(replace(said, settlements=[settled(minutes=3)]), allows=[Allowed.STEP])


@pytest.mark.parametrize("seed", range(5))
def test_the_long_suite_has_kills_and_refusals(seed: int) -> None:
    rounds = few(faults_by_module(), seed)
    injected = {fault.name for _, together in rounds for fault in together}
    assert len(injected & {fault.name for fault in faults_by_module()["kills"]}) >= KILLS
    assert [len(together) for _, together in rounds] == [KILLS + OTHERS, REFUSALS]
    assert len(injected) == KILLS + OTHERS + REFUSALS
    assert all(len({fault.allows - {Allowed.STEP} for fault in together}) == 1 for _, together in rounds)


@pytest.mark.parametrize("count", [45, DEEP])
def test_rounds_inject_the_wanted_number_and_allow_only_what_each_fault_allows(count: int) -> None:
    faults = all_faults()
    rounds = many(faults.values(), random.Random(count).randrange(100), count, 10)
    assert sum(len(together) for _, together in rounds) == count
    injected = {fault.name for _, together in rounds for fault in together}
    assert injected <= set(faults)
    assert len(injected) == min(count, len(faults))
    assert all(len({fault.allows - {Allowed.STEP} for fault in together}) == 1 for _, together in rounds)
