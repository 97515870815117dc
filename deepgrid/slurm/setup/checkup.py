"""Checks a cluster's set-up for `dps provider doctor`, with one command on its login node.

`examine` queries the login node, `judge` is pure. Each finding is one sentence about one subject. A finding that is not
good also says what to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.hook_text import completion_hook, version_of
from deepgrid.slurm.ssh.login import LoginSettings, Runner
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
    """All findings on a cluster; a single one if it is unreachable."""
    try:
        facts = await ask(login, cluster.settings)
    except GridError as error:
        return [Finding.of("login", error)]
    findings = [Finding("login", Level.GOOD, f"{cluster.settings.host} answers as {facts.values['account']}.")]
    try:
        await cluster.health()
        hardware = await cluster.hardware()
    except GridError as error:
        findings.append(Finding.of("slurm", error))
    else:
        version, partition = facts.values.get("SLURM_VERSION") or "(of an unknown version)", cluster.settings.partition
        words = f"Slurm {version}, partition {partition} with {hardware.nodes} nodes."
        findings.append(Finding("slurm", Level.GOOD, words))
    return [*findings, *judge(facts, cluster.settings)]


async def ask(login: Runner, settings: LoginSettings) -> Facts:
    """Query the facts. Raises SlurmUnreachable when the answer was cut off, and what `Runner.run` raises."""
    before = time.time()
    values = _values(whole_answer(await login.run(call(_CHECKUP, settings.grid_root))))
    after, clock = time.time(), float(values["clock"])
    # The clock was read between `before` and `after`; the login may take most of that time.
    return Facts(values, max(0.0, clock - after) or min(0.0, clock - before))


def judge(facts: Facts, settings: LoginSettings) -> list[Finding]:
    """Turn the facts into findings."""
    return [
        _clock(facts.clock_ahead_s),
        *_folders(facts.values, settings),
        _disk(facts.values, settings),
        _locks(facts.values, settings),
        _ends(facts.values, settings),
    ]


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("folder", "hook"):
            about, _, value = value.partition(" ")
            name = f"{name} {about}"
        values[name] = value.strip()
    return values


def _clock(ahead_s: float) -> Finding:
    away = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"
    if abs(ahead_s) <= MAX_CLOCK_SKEW_S:
        return Finding("clock", Level.GOOD, "The login node's clock agrees with this machine's.")
    return Finding("clock", Level.WARNING, f"The login node's clock is {away}.", "Run an NTP client on both.")


def _folders(values: Mapping[str, str], settings: LoginSettings) -> Iterator[Finding]:
    for name in ("", "jobs"):
        state = values.get(f"folder {'/' + name if name else '/'}", "missing")
        path = f"{settings.grid_root}/{name}".rstrip("/")
        if state == "writable" or (name and state == "missing"):  # the first job makes the folder
            continue
        yield Finding(
            "folder", Level.BAD, f"{path} is {state} for {values['account']}.",
            f"Create it for {values['account']}, on a file system shared with the nodes.",
        )  # fmt: skip


def _disk(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    free = int(values.get("free_mib") or 0)
    words = f"{free} MiB are free for {settings.grid_root} ({values.get('filesystem') or 'unknown file system'})."
    if free < FULL_DISK_MIB:
        return Finding("disk", Level.BAD, words, "Make room: jobs cannot be submitted, ends cannot be recorded.")
    return Finding("disk", Level.WARNING if free < LOW_DISK_MIB else Level.GOOD, words)


def _locks(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    if values.get("locks") == "yes":
        return Finding("locks", Level.GOOD, f"flock works on {settings.grid_root}.")
    return Finding(
        "locks", Level.BAD, f"flock does not work on {settings.grid_root}: a job could be submitted twice.",
        "Mount the file system with locks (NFS: version 4, or without nolock), or choose another folder.",
    )  # fmt: skip


def _ends(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    """Where the supervisor reads the ends of jobs, and which ends it could miss."""
    spool = f"{settings.grid_root}/spool"
    accounting = values.get("AccountingStorageType", "") == "accounting_storage/slurmdbd"
    if values.get("JobCompType") == COMPLETION_PLUGIN and values.get("hook SPOOL") == spool:
        if values.get("hook VERSION") != version_of(completion_hook(spool)):
            words = "The completion hook is of another version of deepgrid, which may lose ends that this one records."
            return Finding("ends", Level.BAD, words, "Renew it: dps provider install-hooks CLUSTER --yes.")
        if values.get("folder /spool") == "writable":
            return Finding(
                "ends", Level.GOOD, "The completion hook records all ends, also while the supervisor is down."
            )
        return Finding(
            "ends", Level.BAD, f"The completion hook writes into {spool}, which {values['account']} cannot empty.",
            f"Make {values['account']} the owner of the folder, and let SlurmUser write to it.",
        )  # fmt: skip
    hook = f"Install the completion hook, which writes into {spool}: dps provider install-hooks."
    if accounting:
        words = "Ends come from Slurm's accounting. Ends that it purges while the supervisor is down are lost."
        return Finding("ends", Level.WARNING, words, hook)
    kept = values.get("MinJobAge") or "a few minutes"
    words = f"Ends come only from the queue. A job that ends while the supervisor is down for {kept} earns nothing."
    return Finding("ends", Level.WARNING, words, hook)
