"""Every reason of Slurm for a waiting job has one meaning. `data/pending_reasons.txt` has the words of Slurm's tables.

The file has the words of `job_state_reason.c` in 25.11. It has all words of 22.05, too (`strings libslurmfull.so`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.lifecycle.pending_reasons import REASONS, UNKNOWN, Outlook, Patience, pending_reason

WORDS = (Path(__file__).parent / "data" / "pending_reasons.txt").read_text().split()
NEVER = [
    "PartitionTimeLimit",
    "PartitionNodeLimit",
    "PartitionConfig",
    "BadConstraints",
    "QOSMaxWallDurationPerJobLimit",
    "AssocMaxWallDurationPerJobLimit",
    "QOSMaxCpuPerJobLimit",
    "QOSMaxMemoryPerJob",
    "AssocMaxCpuPerJobLimit",
    "AssocGrpCPUMinutesLimit",
    "MaxMemPerLimit",
    "InvalidAccount",
    "InvalidQOS",
    "QOSNotAllowed",
    "AccountNotAllowed",
    "DependencyNeverSatisfied",
    "ReservationDeleted",
    "AssocMaxGRESPerNode",
    "QOSMinGRES",
    "QOSMinCpuNotSatisfied",
    "QOSGrpWallLimit",
    "QOSMaxCpuMinutesPerJobLimit",
]
SENTENCES = {
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": Outlook.MAY_PASS,
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions": Outlook.MAY_PASS,
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]": Outlook.MAY_PASS,
    "ReqNodeNotAvail, Reserved for maintenance": Outlook.MAY_PASS,
    "launch failed requeued held": Outlook.NEVER,
    "launch_failed_requeued_held": Outlook.NEVER,
    "job requeued in held state": Outlook.HELD,
    "user env retrieval failed requeued held": Outlook.HELD,
    "Job's account not permitted to use this partition (gold allows a not b)": Outlook.NEVER,
    "Job's QOS not permitted to use this partition (gold denies x)": Outlook.NEVER,
    "Burst buffer stage-in timeout": Outlook.HELD,
    "RaisedSignal:9(Killed)": Outlook.NEVER,
}


@pytest.mark.situation(
    "pending", "each of the 198 reasons of Slurm 22.05 to 25.11", "it has one outlook, and an end of its wait",
)  # fmt: skip
@pytest.mark.parametrize("word", WORDS)
def test_each_word_of_slurm_is_known(word: str) -> None:
    reason = pending_reason(word)
    assert reason is not UNKNOWN
    assert (reason.outlook is Outlook.PASSES) == (reason.customer == "")


@pytest.mark.situation(
    "pending", "a lasting reason: a limit of the job, a partition, an account, a QOS, a deleted reservation",
    "the job is given back at once, with a sentence for the customer and one for the provider",
)  # fmt: skip
@pytest.mark.parametrize("word", NEVER)
def test_a_job_beyond_a_limit_of_its_own_never_starts(word: str) -> None:
    assert pending_reason(word).outlook is Outlook.NEVER


@pytest.mark.situation(
    "pending", "a limit that jobs share (`QOSMaxJobsPerUserLimit`, `AssocGrpCpuLimit`), or downed nodes",
    "the job waits for `room_hours`, and is then given back",
)  # fmt: skip
@pytest.mark.parametrize(
    "word",
    ["QOSMaxCpuPerUserLimit", "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit", "AssocGrpCpuLimit", "MaxGRESPerAccount",
     "AssocGrpCPURunMinutesLimit", "QOSGrpSubmitJobsLimit", "AssocMaxSubmitJobLimit", "QOSGrpMemoryRunMinutes"],
)  # fmt: skip
def test_a_limit_that_jobs_share_may_pass(word: str) -> None:
    assert pending_reason(word).outlook is Outlook.MAY_PASS


@pytest.mark.situation(
    "pending", "a job is held (`JobHeldAdmin`, `JobHeldUser`) or depends on another one",
    "it waits for `held_minutes`, and the log says what the administrator can do",
)  # fmt: skip
@pytest.mark.parametrize("word", ["JobHeldAdmin", "JobHeldUser", "Dependency"])
def test_a_held_job_needs_an_administrator(word: str) -> None:
    assert pending_reason(word).outlook is Outlook.HELD


@pytest.mark.situation(
    "pending", "a sentence or details in place of a word (`ReqNodeNotAvail, UnavailableNodes:n1`)",
    "the beginning decides",
)  # fmt: skip
@pytest.mark.parametrize(("text", "outlook"), SENTENCES.items())
def test_a_sentence_or_a_word_with_details_is_read(text: str, outlook: Outlook) -> None:
    reason = pending_reason(text)
    assert (reason.outlook, reason is UNKNOWN) == (outlook, False)


@pytest.mark.situation(
    "pending", "a word unknown to Slurm today", "it is logged once; the job waits for `held_minutes`",
)  # fmt: skip
@pytest.mark.parametrize("text", ["Moonphase", "QOSMaxwell", "Grp", "launch", "\t", "Nodes", "ResourcesGone"])
def test_a_word_that_slurm_does_not_have_is_waited_for_as_for_a_held_job(text: str) -> None:
    assert pending_reason(text).outlook in ((Outlook.PASSES,) if not text.strip() else (Outlook.HELD,))


def test_no_name_stands_twice() -> None:
    names = [name.lower() for reason in REASONS for name in reason.names]
    assert len(set(names)) == len(names)


def test_patience_grows_with_the_outlook() -> None:
    patience = Patience()
    assert [patience.with_outlook(outlook) for outlook in (Outlook.NEVER, Outlook.HELD, Outlook.MAY_PASS)] == [
        0.0,
        patience.held_s,
        patience.room_s,
    ]
    assert patience.with_outlook(Outlook.PASSES) is None
