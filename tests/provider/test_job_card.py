"""The card of a job that is over: message, tags and values for a person, and the lines of its story."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.billing.entries import Settlement
from deepgrid.lifecycle.decide import LOST, Observation
from deepgrid.lifecycle.ends import CANCELLED_BY_SITE, ENDS, FAILED_LAUNCH, REQUEUED
from deepgrid.lifecycle.slurm_state import ABSENT
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.job_card import Place, job_card
from deepgrid.provider.claims.job_story import JobStory
from tests.lifecycle.support import CLAIMED, QUEUED, RUNNING, S, ended, seen

PLACE = Place("alpha", "main", "alice")
SETTLED = Settlement(
    job_id=7, provider="0xa", customer="0xc", billed_minutes=2, paid_wei=16, cut_wei=4, refunded_wei=80, at=9, block=8,
    tx_hash="0xf00",
)  # fmt: skip
OWN_TAGS = ("customer:0xc", "cluster:alpha")


def over(status: JobStatus, state: str, exit_status: int = 0, last_error: str = "") -> Observation:
    slurm = ended(state, 61, exit_status)
    return seen(status, slurm, exit_status=exit_status, last_error=last_error, final_cost_wei=20)


@pytest.mark.parametrize(
    ("found", "message", "tags"),
    [
        (over(JobStatus.FINISHED, "COMPLETED"), "The job is finished.", ("finished", "exit:0")),
        (
            over(JobStatus.FAILED, "FAILED", 7 << 8),
            "The job is failed: exit status 7.",
            ("failed", "exit:7", "fault:job"),
        ),
        (
            over(JobStatus.FAILED, "FAILED", 9),
            "The job is failed: killed by signal 9.",
            ("failed", "signal:9", "fault:job"),
        ),
        (over(JobStatus.OUT_OF_CREDITS, "TIMEOUT"), "The job is out of credits.", ("out-of-credits",)),
        (over(JobStatus.CANCELLED, "CANCELLED"), "The job is cancelled.", ("cancelled",)),
        (
            over(JobStatus.FAILED, "PREEMPTED", last_error=ENDS["PREEMPTED"].error),
            "The job is failed: the cluster preempted the job.",
            ("failed", "preempted", "fault:cluster"),
        ),
        (
            over(JobStatus.FAILED, "FAILED", last_error=FAILED_LAUNCH.error),
            "The job is failed: the cluster could not launch the job.",
            ("failed", "launch-failure", "fault:cluster"),
        ),
        (
            over(JobStatus.FAILED, "CANCELLED", last_error=CANCELLED_BY_SITE.error),
            "The job is failed: the cluster cancelled the job.",
            ("failed", "cancelled-by-site", "fault:cluster"),
        ),
        (
            over(JobStatus.FAILED, "CANCELLED", 15, REQUEUED.error),
            f"The job is failed: killed by signal 15: {REQUEUED.error}.",
            ("failed", "requeued", "signal:15", "fault:unclear"),
        ),
    ],
)
def test_the_card_says_how_and_why_the_job_ended(found: Observation, message: str, tags: tuple[str, ...]) -> None:
    card = job_card(found, PLACE, SETTLED)
    assert (card.message, card.tags) == (message, (*tags, *OWN_TAGS))


def test_a_failed_job_that_is_not_billed_is_the_fault_of_the_cluster() -> None:
    never_started = over(JobStatus.FAILED, "CANCELLED", last_error="the cluster never started the job")
    lost = over(JobStatus.PANICKED, "FAILED", last_error=LOST)
    assert "fault:cluster" in job_card(never_started, PLACE, replace(SETTLED, billed_minutes=0)).tags
    assert "fault:cluster" in job_card(lost, PLACE, None).tags


def test_the_card_has_what_a_person_looks_for() -> None:
    values = job_card(over(JobStatus.FAILED, "FAILED", 7 << 8), PLACE, SETTLED).values
    assert values == {
        "job": "7", "status": "failed", "customer": "0xc", "account": "alice", "Slurm job": "5", "partition": "main",
        "claimed": "1970-01-01 00:16:40 UTC", "started": "1970-01-01 02:45:39 UTC", "ended": "1970-01-01 02:46:40 UTC",
        "exit status": "7", "credits": "0.00000000000000002", "minutes": "2", "earned": "0.000000000000000016",
        "transaction": "0xf00",
    }  # fmt: skip


def test_the_card_of_a_claim_that_was_given_back_says_by_whom() -> None:
    given_back = seen(S, ABSENT, claimed_at=CLAIMED + 1)
    refused, taken = job_card(given_back, PLACE, None, "no such partition"), job_card(given_back, PLACE, None)
    assert (refused.message, refused.tags[0]) == ("The job was given back: no such partition.", "refused")
    assert (taken.message, taken.tags[0]) == ("This claim is no longer ours.", "taken-back")
    assert "credits" not in taken.values


def test_the_story_tells_each_change_once() -> None:
    told: list[str] = []
    story = JobStory(told.append)
    for found in (
        seen(S, ABSENT),
        seen(S, RUNNING),
        seen(S, RUNNING),
        *[over(JobStatus.RUNNING, "FAILED", 7 << 8)] * 2,
    ):
        story.observed(found)
    assert told == [
        "claimed at 1970-01-01 00:16:40 UTC for customer 0xc",
        "started at 1970-01-01 02:45:39 UTC on unknown nodes",
        "ended as FAILED with exit status 7 after 61 s: minutes=2",
    ]


def test_the_story_says_why_a_job_waits_long_once_per_reason() -> None:
    told: list[str] = []
    story = JobStory(told.append)
    drained = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    for reason in ("None", "Resources", drained, "Resources", drained):
        story.observed(seen(S, replace(QUEUED, reason=reason)))
    assert told[1:] == ["waits in Slurm: Resources", f"waits in Slurm: {drained}"]
    quick: list[str] = []
    JobStory(quick.append).observed(replace(seen(S, replace(QUEUED, reason="Resources")), now=CLAIMED + 3))
    assert not any(line.startswith("waits") for line in quick)
