"""Nodes: which of them can run a job, and what a job can get of them. On text; `test_drained.py` has real nodes."""

from __future__ import annotations

import pytest

from deepgrid.findings import Level
from deepgrid.lifecycle.job import Hardware
from deepgrid.slurm.commands.node_states import NODE_WORDS, Use
from deepgrid.slurm.commands.scontrol import PartitionNodes, Scontrol, gpus_of
from deepgrid.slurm.setup.partition_findings import judge_partition


def parsed(*nodes: str, partition: str = "State=UP TotalNodes=1") -> PartitionNodes:
    """Return the partition main with nodes of these fields."""
    lines = [f"NodeName=n{number} Partitions=other,main {fields}" for number, fields in enumerate(nodes, 1)]
    return Scontrol("main").parse("\n".join([f"PartitionName=main {partition}", *lines]))


def figures(gres: str) -> int:
    return sum(gpus_of(gres)[0].values())


@pytest.mark.parametrize(
    ("state", "use"),
    [
        ("IDLE", Use.NOW),
        ("MIXED+PLANNED", Use.NOW),
        ("ALLOCATED+COMPLETING", Use.NOW),
        ("IDLE+CLOUD+REBOOT_REQUESTED", Use.NOW),
        pytest.param(
            "IDLE+CLOUD+POWERED_DOWN", Use.ON_DEMAND, marks=pytest.mark.situation(
                "nodes", "nodes that power saving switched off (`idle~`)", "they count as usable: Slurm starts them"),
        ),
        pytest.param(
            "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", Use.ON_DEMAND, marks=pytest.mark.situation(
                "nodes", "a node that is being started does not respond yet (`mix#`)", "it counts as usable"),
        ),
        ("IDLE+REBOOT_ISSUED+NOT_RESPONDING", Use.ON_DEMAND),
        ("IDLE+DRAIN", Use.NOT),
        ("ALLOCATED+DRAIN", Use.NOT),
        ("DOWN", Use.NOT),
        ("DOWN+CLOUD+POWERING_UP", Use.NOT),
        ("IDLE*", Use.NOT),
        ("IDLE+NOT_RESPONDING", Use.NOT),
        ("IDLE+FAIL", Use.NOT),
        pytest.param(
            "IDLE+MAINTENANCE+RESERVED", Use.NOT, marks=pytest.mark.situation(
                "nodes", "a node in a reservation for maintenance", "it is not usable until the reservation ends"),
        ),
        pytest.param(
            "IDLE+INVALID_REG", Use.NOT, marks=pytest.mark.situation(
                "nodes", "a node with less memory or fewer GPUs than slurm.conf says (`inval`)", "it is not usable"),
        ),
        ("UNKNOWN", Use.NOT),
        ("FUTURE", Use.NOT),
        ("", Use.NOT),
    ],
)  # fmt: skip
def test_a_node_is_as_usable_as_its_worst_word(state: str, use: Use) -> None:
    found = parsed(f"CPUEfctv=4 RealMemory=4000 State={state}")
    assert [node.use for node in found.nodes] == [use]
    assert found.usable.nodes == (use is not Use.NOT)


@pytest.mark.situation(
    "nodes", "a word for a node's state that Slurm does not have today",
    "the node is not usable, and the word is logged once",
)  # fmt: skip
def test_a_node_with_an_unknown_word_is_not_usable() -> None:
    found = parsed("CPUEfctv=4 RealMemory=4000 State=IDLE+HIBERNATING", "CPUEfctv=4 RealMemory=4000 State=IDLE")
    assert (found.unknown_words, found.usable.nodes) == ({"HIBERNATING"}, 1)
    assert found.why_not() == "1 in an unknown state (HIBERNATING)"


def test_the_reasons_are_told_most_frequent_first() -> None:
    drained = "CPUEfctv=4 RealMemory=4000 State=IDLE+DRAIN Reason=new firmware [root@2026-11-28T07:17:33]"
    found = parsed(drained, drained, "CPUEfctv=4 RealMemory=4000 State=DOWN+CLOUD")
    assert found.why_not() == f"2 {NODE_WORDS['DRAIN'][1]} (new firmware); 1 down"


def test_a_reason_cannot_change_the_state_or_the_size_of_a_node() -> None:
    found = parsed("CPUEfctv=4 RealMemory=4000 State=IDLE+DRAIN Reason=State=IDLE CPUEfctv=99 Gres=gpu:9 [root@now]")
    assert found.usable.nodes == 0
    assert found.all == Hardware((0,), (4,), (4000,))


def test_nodes_are_ordered_by_number_and_of_this_partition_only() -> None:
    text = "PartitionName=main State=UP TotalNodes=3\nPartitionName=mainly State=DOWN TotalNodes=9\n"
    for name, cpus, partitions in (("n10", 10, "main"), ("n2", 2, "x,main"), ("n1", 1, "main"), ("n3", 3, "mainly")):
        text += f"NodeName={name} CPUEfctv={cpus} RealMemory=1000 State=IDLE Partitions={partitions} Reason=x\n"
    found = Scontrol("main").parse(text)
    assert found.all.cpus_per_node == (1, 2, 10)
    assert (found.is_up, found.hidden) == (True, 0)
    assert Scontrol("main").parse("").all.nodes == 0
    assert not parsed("", partition="State=DRAIN").is_up


@pytest.mark.situation(
    "nodes", "a reservation of some cores of a node (Slurm marks the whole node as reserved)",
    "the other cores are offered; a node whose cores are all reserved is not usable",
)  # fmt: skip
def test_what_a_reservation_of_cores_leaves_is_offered() -> None:
    def beside(cores: str, state: str = "IDLE+RESERVED", when: str = "ACTIVE") -> PartitionNodes:
        reserved = f"ReservationName=class Nodes=n1 PartitionName=main Flags=SPEC_NODES   NodeName=n1 CoreIDs={cores}"
        node = f"NodeName=n1 NodeAddr=x CPUEfctv=8 RealMemory=8000 ThreadsPerCore=2 State={state} Partitions=main"
        partition = "PartitionName=main State=UP TotalNodes=1"
        return Scontrol("main").parse(f"{reserved} TRES=cpu=2 State={when} Comment=x\n{partition}\n{node}")

    assert beside("0").usable == Hardware((0,), (6,), (8000,))
    assert beside("0-1,3", "MIXED").usable.cpus_per_node == (2,)
    assert (beside("0-3").usable.nodes, beside("0-3", "IDLE").usable.nodes) == (0, 0)
    assert beside("0", "IDLE+MAINTENANCE+RESERVED").usable.nodes == 0
    assert beside("0", "IDLE", "INACTIVE").usable.cpus_per_node == (8,)
    assert beside("x-,0-99999999999").usable.nodes == 0


@pytest.mark.situation("nodes", "a partition with a longest time of jobs (MaxTime)", "doctor says what it means")
def test_doctor_says_that_jobs_beyond_the_longest_time_are_given_back() -> None:
    found = parsed("CPUEfctv=4 RealMemory=4000 State=IDLE", partition="State=UP MaxTime=1-00:00:00")
    (longest,) = [one for one in judge_partition(found, "main", "24.11.5") if one.subject == "longest job"]
    assert longest.words == "MaxTime is 1,440 minutes: a job with credits for more is given back, at no cost."
    unlimited = parsed("CPUEfctv=4 RealMemory=4000 State=IDLE", partition="State=UP MaxTime=UNLIMITED")
    assert "longest job" not in {one.subject for one in judge_partition(unlimited, "main", "24.11.5")}


@pytest.mark.situation("nodes", "nodes whose names differ by leading zeros (`n1`, `n01`)", "both are offered")
def test_names_that_differ_by_leading_zeros_are_two_nodes() -> None:
    text = "PartitionName=main State=UP TotalNodes=3\n"
    for name, cpus in (("n2", 2), ("n1", 1), ("n01", 4)):
        text += f"NodeName={name} CPUEfctv={cpus} RealMemory=1000 State=IDLE Partitions=main\n"
    found = Scontrol("main").parse(text)
    assert ([node.name for node in found.nodes], found.hidden) == (["n01", "n1", "n2"], 0)


@pytest.mark.situation(
    "nodes", "MaxMemPerCPU: Slurm gives a job that wants more memory more CPUs than it pays for",
    "no more memory is offered than all CPUs may have together",
)  # fmt: skip
def test_memory_is_offered_as_far_as_all_cpus_may_have_it() -> None:
    node = "CPUEfctv=4 RealMemory=4000 State=IDLE"
    assert parsed(node, partition="State=UP MaxMemPerCPU=200").all.mem_per_node_mb == (800,)
    assert parsed(node, partition="State=UP MaxMemPerNode=UNLIMITED").all.mem_per_node_mb == (4000,)


@pytest.mark.situation(
    "nodes", "limits per node of a partition (`MaxCPUsPerNode`, `MaxMemPerNode`)", "no node offers more than these"
)
def test_a_node_offers_no_more_than_a_job_may_have_there() -> None:
    node = "CPUEfctv=8 RealMemory=8000 State=IDLE"
    assert parsed(node, partition="State=UP MaxCPUsPerNode=4").all == Hardware((0,), (4,), (8000,))
    assert parsed(node, partition="State=UP MaxMemPerNode=2000").all == Hardware((0,), (8,), (2000,))
    assert parsed(node, partition="State=UP MaxCPUsPerNode=4 MaxMemPerCPU=200").all == Hardware((0,), (4,), (800,))
    of_all = "MaxMemPerNode           = 3000\n"
    text = f"{of_all}PartitionName=main State=UP {{limit}}\nNodeName=n1 Partitions=main {node}"
    for limit, memory in (("MaxMemPerNode=UNLIMITED", 3000), ("MaxMemPerNode=5000", 5000), ("MaxMemPerCPU=900", 7200)):
        assert Scontrol("main").parse(text.format(limit=limit)).all.mem_per_node_mb == (memory,)


@pytest.mark.situation(
    "nodes",
    "hyperthreads (`ThreadsPerCore=2`), or a partition of whole nodes (`OverSubscribe=EXCLUSIVE`)",
    "doctor warns that jobs get more CPUs than they pay for, each with its memory",
)
@pytest.mark.parametrize(
    ("node", "partition", "subjects"),
    [
        ("ThreadsPerCore=2", "OverSubscribe=NO", ["whole cores"]),
        ("ThreadsPerCore=2", "OverSubscribe=EXCLUSIVE", ["whole nodes"]),
        ("ThreadsPerCore=1", "OverSubscribe=NO Exclusive=NODE", ["whole nodes"]),
        ("ThreadsPerCore=1", "OverSubscribe=FORCE:1 Exclusive=USER", []),
    ],
)
def test_doctor_warns_where_slurm_rounds_up_cpus(node: str, partition: str, subjects: list[str]) -> None:
    found = parsed(f"CPUEfctv=8 RealMemory=8000 State=IDLE {node}", partition=f"State=UP TotalNodes=1 {partition}")
    warned = [one.subject for one in judge_partition(found, "main", "24.11.5") if one.level is Level.WARNING]
    assert [subject for subject in warned if subject.startswith("whole")] == subjects


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:4", 4),
        ("gpu:a100:4(S:0-1)", 4),
        ("gpu:a100:4(S:0-1),gpu:v100:2", 6),
        ("gpu", 1),
        ("gpu:a100", 1),
        ("shard:8,gpu:2", 2),
        pytest.param(
            "gpu:a100_3g.20gb:2(S:0),gpu:a100_1g.5gb:14(S:0-1)", 0, marks=pytest.mark.situation(
                "nodes", "MIG: parts of GPUs (`gpu:a100_3g.20gb:2`)", "they are not offered as whole GPUs"),
        ),
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:7,gpu:h100:1", 1),
        ("gpu:1g.10gb:7", 0),
        pytest.param(
            "shard:a100:16", 0, marks=pytest.mark.situation("nodes", "shards of GPUs", "they are not offered as GPUs"),
        ),
        pytest.param(
            "gpu:T:no_consume:4", 0, marks=pytest.mark.situation(
                "nodes", "GPUs that jobs do not consume (`no_consume`)", "they are not offered: jobs would share them"),
        ),
        ("gpu:no_consume:4", 0),
        ("(null)", 0), ("", 0), ("gpufoo:3", 0),
    ],
)  # fmt: skip
def test_only_whole_gpus_count(gres: str, gpus: int) -> None:
    assert figures(gres) == gpus


@pytest.mark.situation("nodes", "GPU types that are numbers (`gpu:3090:2`)", "they are types like others")
def test_a_type_may_be_a_number() -> None:
    assert gpus_of("gpu:3090:2(S:0)")[0] == {"3090": 2}
    assert gpus_of("gpu:4090:8,gpu:1080:4,gpu:2080ti:1")[0] == {"4090": 8, "1080": 4, "2080ti": 1}
    assert gpus_of("gpu:0:3")[0] == {"0": 3}
    assert gpus_of("gpu:3090")[0] == {"": 3090}  # Slurm reads it as a count, too
