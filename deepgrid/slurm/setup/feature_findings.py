"""What doctor says about the features of the nodes, and the summary: what customers get here. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.findings import Finding, Level
from deepgrid.lifecycle import feature_labels as keys
from deepgrid.slurm.commands.scontrol import PartitionNodes
from deepgrid.slurm.setup.features import PYTHON, NodeFeatures

_NETWORKS = (keys.PASTA, keys.SLIRP4NETNS)


def judge_features(found: NodeFeatures, apptainer: str, *, sessions: bool) -> Iterator[Finding]:
    """Yield a finding for each feature that jobs may need. Jobs that need a missing one go to other clusters.

    `sessions` is the provider's setting.
    """
    node, elsewhere = found.node, "jobs that need it are not assigned here, and earn nothing"
    if found.runtimes:
        yield Finding("containers", Level.GOOD, f"The node {node} runs containers with {' and '.join(found.runtimes)}.")
    else:
        words = f"The node {node} has neither Apptainer ({apptainer}) nor Enroot: {elsewhere}."
        step = "Install Apptainer on all nodes, or correct apptainer in the Slurm login block."
        yield Finding("containers", Level.WARNING, words, f"{step} Most jobs run in containers.")
    if keys.S3 in found.found:
        yield Finding("S3", Level.GOOD, f"The node {node} copies input and output over S3 with s5cmd.")
    else:
        words = f"The node {node} has no s5cmd for input and output over S3: {elsewhere}."
        yield Finding("S3", Level.WARNING, words, "Install s5cmd on all nodes, on the PATH of login shells.")
    if keys.PRIVATE in found.found:
        yield Finding("private files", Level.GOOD, f"The node {node} decrypts private files with python3.")
    else:
        words = f"The node {node} has no python3 (3.7 or later) with libcrypto for private files: {elsewhere}."
        step = "Install python3 on all nodes, on the PATH of login shells."
        yield Finding("private files", Level.WARNING, words, step)
    if _networks(found):
        yield Finding("networks", Level.GOOD, f"The node {node} has networks of steps ({', '.join(_networks(found))}).")
    else:
        words = f"The node {node} cannot make networks of steps: {elsewhere}."
        step = "They need pasta or slirp4netns, user namespaces, and /dev/net/tun open to all accounts."
        yield Finding("networks", Level.WARNING, words, step)
    if found.memory_limits == "none":
        words = f"On the node {node} a job can take more memory than it pays for, and starve others."
        step = "Set TaskPlugin=task/cgroup, and ConstrainRAMSpace=yes in cgroup.conf, on all nodes."
        yield Finding("memory", Level.WARNING, words, step)
    else:
        yield Finding("memory", Level.GOOD, "Slurm ends jobs that take more memory than they asked for.")
    yield _judge_sessions(found, sessions)


def _judge_sessions(found: NodeFeatures, allowed: bool) -> Finding:
    """Compare the setting, which customers see as the label `sessions`, with what the node has."""
    if not allowed:
        return Finding(
            "shells", Level.GOOD, "Customers get no sessions in their running jobs: the provider block says so."
        )
    if PYTHON in found.found:
        return Finding("shells", Level.GOOD, f"The node {found.node} has python3 for sessions in running jobs.")
    words = f"The node {found.node} has no python3 (3.7 or later) in /usr/bin: the label sessions promises what fails."
    step = "Install python3 on all nodes, or set sessions to false in the provider block."
    return Finding("shells", Level.WARNING, words, step)


def summary(partition: PartitionNodes | None, found: NodeFeatures | None) -> Finding:
    """Return the last finding: how many nodes can run how many jobs, and what customers get."""
    if partition is None or not partition.is_up or not partition.usable.nodes:
        words = "No job can run here now, so none is claimed and nothing is earned. Customers' jobs go to others."
        return Finding("summary", Level.WARNING, words, "Repair what is BAD above.")
    usable = partition.usable
    gpus = f" and {sum(usable.gpus_per_node)} GPUs" if sum(usable.gpus_per_node) else ""
    words = (
        f"{usable.nodes} of {max(partition.total, len(partition.nodes))} nodes can run jobs:"
        f" up to {sum(usable.cpus_per_node)} jobs of one CPU at a time{gpus}."
    )
    if found is None:
        return Finding("summary", Level.WARNING, f"{words} What nodes offer is unknown.", "Run the doctor again later.")
    offers = {
        "containers": " and ".join(found.runtimes),
        "S3": "s5cmd" if keys.S3 in found.found else "",
        "private files": "python3" if keys.PRIVATE in found.found else "",
        "networks": ", ".join(_networks(found)),
        "logs": "live",
    }
    has = ", ".join(f"{name} ({how})" for name, how in offers.items() if how)
    lacks = ", ".join(name for name, how in offers.items() if not how)
    return Finding("summary", Level.GOOD, f"{words} Customers get {has}{f'; not {lacks}' if lacks else ''}.")


def _networks(found: NodeFeatures) -> list[str]:
    return [key.partition(".")[2] for key in _NETWORKS if key in found.found]
