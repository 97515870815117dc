"""Checks a cluster's set-up for `dps provider doctor`: Slurm, clocks, folders, disk, locks, and how ends are learned.

`examine` queries the login node with one command, `judge` is pure. Each finding is one sentence about one subject. A
bad finding also says what to do. One cause has one finding: its consequences are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.folder_findings import judge_folders
from deepgrid.slurm.setup.hook_text import completion_hook, version_of
from deepgrid.slurm.setup.partition_findings import judge_partition, judge_programs, judge_speed
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

MAX_CLOCK_SKEW_S = 5.0
LOW_DISK_MIB, FULL_DISK_MIB = 1024, 64
COMPLETION_PLUGIN = "jobcomp/lua"

_CHECKUP = read_script("config.sh", "checkup.sh")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the login node by name, and the difference of its clock to ours (s, positive if it is ahead)."""

    values: Mapping[str, str]
    clock_ahead_s: float


async def examine(login: Runner, cluster: Cluster) -> list[Finding]:
    """Return all findings on a cluster; a single one if it is unreachable."""
    try:
        facts = await ask(login, cluster.settings)
    except GridError as error:
        return [Finding.of("login", error)]
    findings = [Finding("login", Level.GOOD, f"{cluster.settings.host} answers as {facts.values['account']}.")]
    try:
        await cluster.health()
        found = await cluster.partition()
    except GridError as error:
        if not (missing := list(judge_programs(facts.values))):  # one cause has one finding
            findings.append(_slurm_fault(error, facts.values))
        findings += missing
    else:
        findings += judge_partition(found, cluster.settings.partition, facts.values.get("SLURM_VERSION", ""))
        findings += judge_programs(facts.values)
        findings += judge_speed(facts.values, cluster.settings.slurm_timeout_s)
    return [*findings, *judge(facts, cluster.settings)]


async def ask(login: Runner, settings: LoginSettings) -> Facts:
    """Query the facts. Raises SlurmUnreachable when the answer was cut off, and what `Runner.run` raises."""
    before = time.time()
    values = _values(whole_answer(await login.run(call(_CHECKUP, settings.grid_root))))
    after, clock = time.time(), float(values["clock"])
    # The clock was read between `before` and `after`; the login may take most of that time.
    return Facts(values, max(0.0, clock - after) or min(0.0, clock - before))


def _slurm_fault(error: GridError, values: Mapping[str, str]) -> Finding:
    """Return the finding for a Slurm without a node for jobs, or without an answer."""
    if error.transient:
        words = f"{error.message} Nothing is claimed until it does; running jobs lose nothing."
        return Finding("slurm", Level.BAD, words, "Look at slurmctld and its log.")
    step = error.next_step
    if not step and values.get("partitions"):
        step = f"Slurm has the partitions {values['partitions']}. Correct partition in the Slurm login block."
    return Finding("slurm", Level.BAD, f"{error.message} Nothing is claimed.", step)


def judge(facts: Facts, settings: LoginSettings) -> list[Finding]:
    """Turn the facts into findings."""
    folders = list(judge_folders(facts.values, settings))
    if any(fault.level is Level.BAD for fault in folders):  # disk and locks cannot be tried there
        return [_clock(facts.clock_ahead_s), *folders]
    found = [_clock(facts.clock_ahead_s), *folders, _disk(facts.values, settings), _locks(facts.values, settings)]
    if facts.values.get("SLURM_VERSION"):  # or Slurm does not answer, which is a finding of its own
        found += [_ends(facts.values, settings), *_accounting(facts.values), *_submit_hook(facts.values)]
    return found


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("folder", "hook", "closed"):
            about, _, value = value.partition(" ")
            name = f"{name} {about}"
        values[name] = value.strip()
    return values


def _clock(ahead_s: float) -> Finding:
    away = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"
    if abs(ahead_s) <= MAX_CLOCK_SKEW_S:
        return Finding("clock", Level.GOOD, "The login node's clock agrees with this machine's.")
    return Finding("clock", Level.WARNING, f"The login node's clock is {away}.", "Run an NTP client on both.")


def _disk(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    free = int(values.get("free_mib") or 0)
    words = f"{free} MiB are free for {settings.grid_root} ({values.get('filesystem') or 'unknown file system'})."
    if free < FULL_DISK_MIB:
        return Finding("disk", Level.BAD, words, "Make room: jobs cannot be submitted, ends cannot be recorded.")
    return Finding("disk", Level.WARNING if free < LOW_DISK_MIB else Level.GOOD, words)


def _locks(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    if values.get("locks") == "yes":
        return Finding("locks", Level.GOOD, f"flock works on {settings.grid_root}.")
    words = f"flock does not work on {settings.grid_root}: a job could be submitted twice."
    step = "Mount the file system with locks (NFS: version 4, or without nolock), or choose another folder."
    return Finding("locks", Level.BAD, words, step)


def _ends(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    """Return where the supervisor learns that jobs ended, and which ends it could miss."""
    spool = f"{settings.grid_root}/spool"
    accounting = values.get("AccountingStorageType", "") == "accounting_storage/slurmdbd"
    if values.get("JobCompType") == COMPLETION_PLUGIN and values.get("hook SPOOL") == spool:
        if values.get("hook VERSION") != version_of(completion_hook(spool)):
            words = "The completion hook is of another version of deepgrid, which may lose ends that this one records."
            return Finding("ends", Level.BAD, words, "Renew it: dps provider install-hooks CLUSTER --yes.")
        if values.get("folder /spool") == "writable":
            words = "The completion hook records all ends, even while the supervisor is down."
            return Finding("ends", Level.GOOD, words)
        words = f"The completion hook writes into {spool}, which {values['account']} cannot empty."
        step = f"Make {values['account']} the owner of the folder, and let SlurmUser write to it."
        return Finding("ends", Level.BAD, words, step)
    hook = f"Install the completion hook, which writes into {spool}: dps provider install-hooks."
    if accounting:
        words = "Ends come from Slurm's accounting. Ends that it purges while the supervisor is down are lost."
        return Finding("ends", Level.WARNING, words, hook)
    kept = values.get("MinJobAge") or "a few minutes"
    if kept.split()[0] == "0":  # Slurm then purges no job record
        words = (
            "Ends come only from the queue. Slurm keeps ended jobs there (MinJobAge=0): its memory fills up with them."
        )
        return Finding("ends", Level.WARNING, words, hook)
    words = f"Ends come only from the queue. A job that ends while the supervisor is down for {kept} earns nothing."
    return Finding("ends", Level.WARNING, words, hook)


def _accounting(values: Mapping[str, str]) -> Iterator[Finding]:
    if values.get("accounting") != "silent":
        return
    words = "Slurm's accounting (slurmdbd) does not answer: no end that the controller forgot can be read from it."
    if values.get("JobCompType") == COMPLETION_PLUGIN:
        words += " Jobs end by the completion hook meanwhile; bills are not compared with accounting."
        yield Finding("accounting", Level.WARNING, words, "Look at slurmdbd and its database.")
    else:
        words += " Such a job earns nothing."
        yield Finding("accounting", Level.BAD, words, "Look at slurmdbd and its database, or install the hooks.")


def _submit_hook(values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a fault for a hook that slurmctld still has in memory, but no longer finds next to slurm.conf."""
    plugins = values.get("JobSubmitPlugins", "").split(",")
    if "lua" in plugins and values.get("job_submit.lua") == "gone":
        words = "job_submit.lua is gone from the folder of slurm.conf: after its next restart slurmctld takes no job."
        yield Finding("submit hook", Level.BAD, words, "Renew it: dps provider install-hooks CLUSTER --yes.")
