"""What doctor says about Slurm itself: version, partition, nodes, programs, and how long they take. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from deepgrid.findings import Finding, Level
from deepgrid.slurm.commands.scontrol import PartitionNodes
from deepgrid.slurm.commands.versions import OWNERS_SUSPEND_FROM, TESTED_VERSIONS

SLOW_SHARE = 0.25  # of the time limit of a command


def judge_partition(found: PartitionNodes, partition: str, version: str) -> Iterator[Finding]:
    """Yield what the partition's nodes mean for jobs. Some node can run one."""
    shown = f"Slurm {version}" if version else "Slurm (of an unknown version)"
    words = f"{shown}, partition {partition}: {found.usable.nodes} of {len(found.nodes)} nodes can run jobs."
    if faults := found.why_not():
        step = "Jobs wait longer until these nodes take jobs again (sinfo -R on the login node)."
        yield Finding("slurm", Level.WARNING, f"{words} The others: {faults}.", step)
    else:
        yield Finding("slurm", Level.GOOD, words)
    if found.hidden:
        words = f"Slurm hides {found.hidden} of the partition's {found.total} nodes, which are not offered."
        step = "If they are powered-down cloud nodes, add cloud to PrivateData in slurm.conf."
        yield Finding("hidden nodes", Level.WARNING, words, step)
    if found.slices:
        words = f"Parts of GPUs ({', '.join(found.slices)}) are not offered."
        step = "Give them a partition of their own: a job that asks for a GPU could get a part."
        level = Level.WARNING if found.gpu_types else Level.GOOD
        yield Finding("GPU slices", level, words, step if found.gpu_types else "")
    if limit := found.max_mem_per_cpu_mb:
        words = f"MaxMemPerCPU is {limit} MB: a job with more memory per CPU gets more CPUs than it pays for."
        step = f"Raise it to the memory of a node by its CPUs. At most {limit} MB per CPU are offered."
        yield Finding("memory per CPU", Level.WARNING, words, step)
    if found.max_minutes:
        words = f"MaxTime is {found.max_minutes:,} minutes: a job with credits for more is given back, at no cost."
        step = "Raise MaxTime of the partition, or tell customers to ask for less (dps submit --time)."
        yield Finding("longest job", Level.WARNING, words, step)
    yield from _judge_allocation(found)
    yield from judge_version(version)


def _judge_allocation(found: PartitionNodes) -> Iterator[Finding]:
    """Yield a warning if Slurm rounds up the CPUs of jobs, and with them their memory, which counts per CPU."""
    if found.is_exclusive:
        words = "The partition gives jobs whole nodes: a job gets more CPUs than it pays for, each with its memory."
        step = "Slurm refuses a job if they exceed a node. Remove OverSubscribe=EXCLUSIVE (from 26.05, Exclusive=NODE)."
        yield Finding("whole nodes", Level.WARNING, words, step)
    elif (threads := found.threads_per_core) > 1:
        words = f"Slurm gives whole cores of {threads} CPUs: a job of 1 CPU gets {threads}, each with its memory."
        step = "Slurm refuses a job if they exceed a node. Offer cores: set ThreadsPerCore=1, and CPUs to their number."
        yield Finding("whole cores", Level.WARNING, words, step)


def judge_version(version: str) -> Iterator[Finding]:
    """Yield a warning for a version that this release was not tested with, or that lets jobs suspend themselves."""
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers >= OWNERS_SUSPEND_FROM:
        words = f"Slurm {version} lets an account suspend its own jobs, and suspended time is not billed."
        step = "Compare the run time and the bill of customers with much suspended time (sacct -o Suspended)."
        yield Finding("suspension", Level.WARNING, words, step)
    if numbers and numbers not in TESTED_VERSIONS:
        tested = ", ".join(f"{major}.{minor:02}" for major, minor in TESTED_VERSIONS)
        words = f"Slurm {version} is not among the tested versions ({tested})."
        yield Finding("version", Level.WARNING, words, "Try a few jobs of your own before you take jobs of customers.")


def judge_programs(facts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a fault for programs of Slurm that the login node does not find."""
    if missing := facts.get("missing", "").split():
        are = "is" if len(missing) == 1 else "are"
        words = f"{', '.join(missing)} {are} not in {facts.get('path', '')}: no job can be submitted or watched."
        step = "Set slurm_path in the Slurm login block to the folder of Slurm's commands, such as /opt/slurm/bin."
        yield Finding("programs", Level.BAD, words, step)


def judge_speed(facts: Mapping[str, str], limit_s: float) -> Iterator[Finding]:
    """Yield a warning if Slurm's slowest command took much of the time that a command has."""
    found = re.fullmatch(r"[0-9]{1,6}[.,][0-9]", facts.get("slowest", ""))
    if found and (seconds := float(found[0].replace(",", "."))) > SLOW_SHARE * limit_s:
        words = f"A command of Slurm took {seconds:.1f} s. After {limit_s:.0f} s it counts as not answered."
        step = "Find out why Slurm is slow, or raise slurm_timeout_s in the Slurm login block."
        yield Finding("slow commands", Level.WARNING, words, step)
