"""Every parser on what every version of Slurm printed for the same jobs and nodes (`record.py`)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from deepgrid.lifecycle.job import Hardware
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import phase_of
from deepgrid.slurm.commands.node_states import Use
from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.commands.scontrol import Scontrol
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.commands.versions import TESTED_VERSIONS, wait_status
from tests.slurm.record import KINDS, RECORDED

VERSIONS = sorted(folder.name for folder in RECORDED.iterdir())
EXIT_CODES = {"exit 3": 3, "exit 125": 125, "exit 128": 128, "exit 137": 137, "exit 255": 255}
# What queue and completion hook say about the end of each job: state, exit status, reason.
ENDS = {
    "exit 0": ("COMPLETED", 0, ""),
    "on all nodes": ("COMPLETED", 0, ""),
    **{kind: ("FAILED", wait_status(code, 0), "") for kind, code in EXIT_CODES.items()},
    "killed": ("FAILED", 9, ""),
    "terminated": ("FAILED", 15, ""),
    "failed launch": ("FAILED", 53, "JobLaunchFailure"),
    "cancelled by root": ("CANCELLED", 15, ""),
    "cancelled while waiting": ("CANCELLED", 0, ""),
    "node failure": ("NODE_FAIL", 0, ""),
}
PHASES = {
    "held": Phase.QUEUED, "later": Phase.QUEUED, "requeued": Phase.QUEUED,
    "running": Phase.RUNNING, "suspended": Phase.RUNNING, "resized": Phase.RUNNING,
}  # fmt: skip
of_all_versions = pytest.mark.parametrize("version", VERSIONS)


def text(version: str, name: str) -> str:
    return (RECORDED / version / f"{name}.txt").read_text()


def by_kind(version: str, rows: Iterable[Row]) -> dict[str, Row]:
    """Return the first row of each kind of job."""
    kinds = {int(slurm_id): kind for slurm_id, _, kind in (line.partition(" ") for line in lines(version, "jobs"))}
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(kinds[row.slurm_id], row)
    return found


def lines(version: str, name: str) -> list[str]:
    return text(version, name).splitlines()


def test_the_tested_versions_are_recorded() -> None:
    assert {tuple(map(int, version.split(".")[:2])) for version in VERSIONS} == set(TESTED_VERSIONS)


@pytest.mark.situation(
    "versions", "squeue of 22.05, 24.11 and 26.05, for jobs of 19 kinds",
    "one meaning: state, exit status, times, and whether the launch failed",
)  # fmt: skip
@of_all_versions
def test_the_queue_means_the_same_in_every_version(version: str) -> None:
    rows = by_kind(version, Squeue.parse(text(version, "squeue")))
    assert rows.keys() == KINDS.keys()
    ends = {kind: (row.state, row.exit_status, row.reason) for kind, row in rows.items() if kind in ENDS}
    assert ends == ENDS
    assert {kind: phase_of(rows[kind].state) for kind in PHASES} == PHASES
    assert rows["time limit"].state == "TIMEOUT"
    assert rows["cancelled while waiting"].started_at is None
    assert rows["requeued"].restarts == 1
    ran = rows["time limit"]
    assert ran.started_at and ran.ended_at and 60 <= ran.ended_at - ran.started_at < 120


@pytest.mark.situation(
    "versions", "records of the completion hook of 22.05, 24.11 and 26.05", "the same ends as in the queue",
)  # fmt: skip
@of_all_versions
def test_the_completion_hook_means_the_same_in_every_version(version: str) -> None:
    rows = by_kind(version, Completions.parse(text(version, "completions")))
    early = {"cancelled by root": ("CANCELLED", 0, "")}  # the hook runs before the job's processes have ended
    assert {kind: (rows[kind].state, rows[kind].exit_status, rows[kind].reason) for kind in ENDS} == {**ENDS, **early}
    assert (rows["requeued"].state, rows["time limit"].state) == ("REQUEUED", "TIMEOUT")


@pytest.mark.situation(
    "versions", "accounting of 26.05, which prints exit codes from 128 as they are, and of older versions",
    "both are read; older versions hide what is above 128",
)  # fmt: skip
@of_all_versions
def test_accounting_gives_each_end_as_far_as_it_knows(version: str) -> None:
    rows = by_kind(version, Sacct.parse(text(version, "sacct")))
    for kind, (state, exit_status, _) in ENDS.items():
        if kind in ("cancelled while waiting", "cancelled by root"):  # it never started; its signal is not stored
            continue
        hidden = {"exit 137": 9, "exit 255": 127} if version < "26" else {}
        wanted = wait_status(hidden[kind], 0) if kind in hidden else exit_status
        assert (kind, rows[kind].state, rows[kind].exit_status) == (kind, state, wanted)
    assert (rows["running"].ended_at, rows["suspended"].ended_at) == (None, None)
    assert rows["requeued"].state == "REQUEUED"


@pytest.mark.situation(
    "nodes", "scontrol of 22.05, 24.11 and 26.05, for nodes in nine states",
    "one meaning: which nodes can run a job now, on demand or not, and why",
)  # fmt: skip
@of_all_versions
def test_nodes_mean_the_same_in_every_version(version: str) -> None:
    found = Scontrol("main").parse(text(version, "nodes"))
    uses = {node.name.removeprefix("rec-"): node.use for node in found.nodes}
    clouds = {"cloud1": Use.ON_DEMAND, "cloud2": Use.ON_DEMAND} if version > "23" else {}
    assert uses == {
        **clouds, "core": Use.NOT, "slices": Use.NOT, "n1": Use.NOW, "n2": Use.NOW, "n3": Use.NOT, "n4": Use.NOT,
        "n5": Use.NOT, "n6": Use.ON_DEMAND, "n7": Use.NOT, "n8": Use.NOW, "n9": Use.NOW,
    }  # fmt: skip
    cpus = {node.name: node.cpus for node in found.nodes}
    assert (cpus["rec-n8"], cpus["rec-n9"]) == (5, 8), "three cores of one are reserved"
    assert (found.is_up, found.unknown_words) == (True, frozenset())
    assert found.hidden == (3 if version < "23" else 1), "a future node, and on 22.05 the powered-down cloud nodes"
    reasons = {node.name: node.reason for node in found.nodes}
    assert (reasons["rec-n3"], reasons["rec-n5"]) == ("State=IDLE, says the administrator", "maintenance")
    assert "1 failing: an administrator or a check marked it (memory errors)" in found.why_not() or "others" in (
        found.why_not()
    )


@pytest.mark.situation(
    "nodes", "a node of 16 CPUs and 8,000 MB with CoreSpecCount=2 and MemSpecLimit=1000",
    "14 CPUs and 7,000 MB are offered, which is what a job can get",
)  # fmt: skip
@of_all_versions
def test_the_offer_is_what_a_job_can_get(version: str) -> None:
    found = Scontrol("odd").parse(text(version, "nodes").replace("PartitionName=main", "PartitionName=odd"))
    assert found.max_mem_per_cpu_mb == 900
    assert found.all == Hardware((0, 1), (14, 16), (7000, 8000))
    assert (found.gpu_types, found.slices) == ({"v100": 1}, ("a100_1g.5gb", "a100_3g.20gb"))
