"""Kills remaining processes of a stopped cluster: jobs outlive their slurmd, open sessions outlive their sshd.

A slurmstepd is ours if its unix socket is in our socket folder; its environment is overwritten, so there is no
other mark. A job process is ours if its environment names one of our slurm.conf files, or if it descends from
one of these.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from deployments.onemachine.daemons.processes import process_fields

POLL_S = 0.02


def kill_steps(sockets: Path, configurations: Collection[Path], within_s: float = 10.0) -> None:
    """Kill step daemons with sockets under `sockets` and processes of jobs of `configurations` until none is left."""
    marks = [f"SLURM_CONF={path}\0".encode() for path in configurations]
    deadline = time.monotonic() + within_s
    while (victims := _family(sockets, marks)) and time.monotonic() < deadline:
        _kill(victims)
        time.sleep(POLL_S)


def kill_descendants(pid: int) -> None:
    """Kill the descendants of `pid`, but not `pid`. Each session of an sshd has its own process group."""
    _kill(_with_descendants({pid}, _parents()) - {pid})


def _kill(victims: Collection[int]) -> None:
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _family(sockets: Path, marks: list[bytes]) -> set[int]:
    """Return the process ids of step daemons and job processes, with all their descendants; never our own ancestors."""
    parents = _parents()
    inodes = _socket_inodes(sockets)
    family = {pid for pid in parents if _is_step(pid, inodes) or _is_job(pid, marks)}
    return _with_descendants(family, parents) - _ancestors(parents)


def _with_descendants(family: set[int], parents: dict[int, int]) -> set[int]:
    """`family` with all descendants."""
    children = family
    while children:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family = family | children
    return family


def _parents() -> dict[int, int]:
    """Return parent of each live process."""
    fields = {int(entry): process_fields(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()}
    return {pid: int(found[1]) for pid, found in fields.items() if found is not None}


def _socket_inodes(folder: Path) -> set[str]:
    """Kernel names of the sockets bound under `folder`, as they appear behind /proc/PID/fd."""
    rows = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return {f"socket:[{row[6]}]" for row in rows if len(row) > 7 and row[7].startswith(f"{folder}/")}


def _is_step(pid: int, inodes: set[str]) -> bool:
    try:
        if not Path(f"/proc/{pid}/comm").read_text().startswith("slurmstepd"):
            return False
        return any(os.readlink(entry.path) in inodes for entry in os.scandir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def _is_job(pid: int, marks: list[bytes]) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return b"SLURM_JOB_ID=" in environment and any(mark in environment for mark in marks)


def _ancestors(parents: dict[int, int]) -> set[int]:
    chain, pid = set(), os.getpid()
    while pid in parents:
        chain.add(pid)
        pid = parents[pid]
    return chain
