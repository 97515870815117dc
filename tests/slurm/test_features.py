"""Features of a node that jobs may need: how a look finds them, and their labels."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deepgrid.findings import Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.scontrol import Node, PartitionNodes
from deepgrid.slurm.setup.feature_findings import judge_features, summary
from deepgrid.slurm.setup.features import LOOK, NodeFeatures, look_at_node

ALL = (
    "containers.apptainer containers.enroot containers.pyxis storage.http storage.s3 network.pasta network.slirp4netns"
    " storage.private network.wireguard memory.cgroup memory.sampled"
)


def features(names: str) -> NodeFeatures:
    return NodeFeatures("n1", frozenset(names.split()))


def labels_of(found: NodeFeatures) -> dict[str, str]:
    return {label.key: label.value for label in found.labels}


def test_features_become_labels() -> None:
    assert labels_of(features(ALL)) == {
        "containers": "apptainer-enroot",
        "memory.limits": "cgroup",
        "network.pasta": "true",
        "network.slirp4netns": "true",
        "network.wireguard": "true",
        "storage.http": "true",
        "storage.private": "true",
        "storage.s3": "true",
    }


def test_what_is_missing_is_no_label_except_for_the_memory() -> None:
    assert labels_of(features("containers.apptainer")) == {"containers": "apptainer", "memory.limits": "none"}
    assert labels_of(features("memory.sampled")) == {"memory.limits": "sampled"}


def test_other_lines_of_an_answer_are_skipped() -> None:
    lines = ["n1", "feature storage.s3", "Welcome to the cluster", "feature of.later"]
    assert NodeFeatures.parse("n1", lines) == features("storage.s3 of.later")


def look_in(folder: Path, config: str = "", programs: str = "") -> set[str]:
    """Look at a node whose login shell has few programs of this machine, and `programs` that only succeed."""
    for name in ("bash", "sh", "timeout", "sed", "head", "cat"):
        (folder / name).symlink_to(f"/bin/{name}")
    for name in programs.split():
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    (folder / ".bash_profile").write_text(f"PATH={folder}\n")
    script = f"{LOOK}\nconfig=$0\nlook_at_features {folder}/apptainer {folder}\n"
    environment = {"PATH": str(folder), "HOME": str(folder), "SLURM_JOB_ID": "1"}
    command = ["/bin/sh", "-c", script, config]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return set(NodeFeatures.parse("n1", done.stdout.splitlines()).found)


@pytest.mark.situation("features", "a node without any tool that jobs may need", "the cluster has no such label")
def test_a_bare_node_has_no_features(tmp_path: Path) -> None:
    assert look_in(tmp_path) == set()


@pytest.mark.situation("features", "tools that only the profile of a login shell puts on the path", "they are found")
def test_programs_of_a_login_shell_count(tmp_path: Path) -> None:
    found = look_in(tmp_path, programs="apptainer enroot s5cmd curl zip")
    assert found == {"containers.apptainer", "containers.enroot", "storage.s3", "storage.http"}


def test_python_counts_where_steps_of_sessions_look(tmp_path: Path) -> None:
    assert look_in(tmp_path, programs="python3") == {"python3", "storage.private"}


def test_an_old_python_serves_no_sessions(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    assert look_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("names", "allowed", "level", "words"),
    [
        ("python3", True, Level.GOOD, "has python3"),
        ("", True, Level.WARNING, "no python3"),
        ("", False, Level.GOOD, "the provider block says so"),
    ],
)
def test_the_doctor_compares_the_label_of_sessions_with_the_node(
    names: str, allowed: bool, level: Level, words: str
) -> None:
    (found,) = [
        one for one in judge_features(features(names), "apptainer", sessions=allowed) if one.subject == "shells"
    ]
    assert found.level is level
    assert words in found.words


@pytest.mark.parametrize(
    ("names", "level", "words"),
    [
        ("storage.private", Level.GOOD, "decrypts private files"),
        ("python3", Level.WARNING, "no python3 (3.7 or later)"),
    ],
)
def test_the_doctor_says_whether_a_node_decrypts_private_files(names: str, level: Level, words: str) -> None:
    found = features(names)
    (one,) = [one for one in judge_features(found, "apptainer", sessions=True) if one.subject == "private files"]
    assert (one.level, words in one.words) == (level, True)
    assert (
        "private files (python3)"
        in summary(PartitionNodes("UP", (Node("n1", ("IDLE",), 4, 1000, {}, {}),)), found).words
    ) is (level is Level.GOOD)


@pytest.mark.situation("features", "a tool that is installed and cannot start", "it counts as missing")
def test_programs_that_cannot_start_are_missing(tmp_path: Path) -> None:
    (tmp_path / "s5cmd").write_text("#!/bin/sh\necho error while loading shared libraries >&2\nexit 127\n")
    (tmp_path / "s5cmd").chmod(0o755)
    assert look_in(tmp_path, programs="apptainer") == {"containers.apptainer"}


@pytest.mark.parametrize(
    ("gathers", "params", "sampled"),
    [
        ("jobacct_gather/linux", "UsePss,OverMemoryKill", {"memory.sampled"}),
        ("jobacct_gather/linux", "UsePss", set()),
        ("jobacct_gather/none", "OverMemoryKill", set()),
        ("(null)", "(null)", set()),
    ],
)
def test_memory_is_limited_by_samples_where_slurm_takes_any(
    tmp_path: Path, gathers: str, params: str, sampled: set[str]
) -> None:
    config = f"JobAcctGatherFrequency  = 30\nJobAcctGatherType       = {gathers}\nJobAcctGatherParams     = {params}"
    assert look_in(tmp_path, config) == sampled


async def test_a_look_at_a_real_node_finds_what_this_machine_has(cluster: Cluster) -> None:
    looked = await look_at_node(cluster)
    assert looked is not None and looked.node == os.uname().nodename
    assert "containers.enroot" not in looked.found
    assert ("storage.http" in looked.found) == all(os.access(f"/usr/bin/{name}", os.X_OK) for name in ("curl", "zip"))


@pytest.mark.situation("features", "no free node for the look", "the labels on chain stay as they are")
async def test_a_partition_without_a_free_node_has_unknown_features(cluster: Cluster, held: Callable[[], None]) -> None:
    assert await look_at_node(cluster, timeout_s=1.0) is None
