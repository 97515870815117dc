"""An account that stops or kills its own processes on the login node, as a loop in one of its jobs can."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.attacks.local_account import PYTHON
from tests.attacks.on_slurm import Person

# Whatever the supervisor may start on the login node, except shells of jobs.
PROGRAMS = ("scancel", "timeout", "sbatch", "setpriv", "env", "find", "rm", "chmod", "sudo", "squeue", "scontrol")
LOOP = """
import os, sys
number, names = int(sys.argv[1]), set(sys.argv[2:])
print("ready", flush=True)
while True:
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                with open(f"/proc/{entry.name}/comm") as file:
                    if file.read().strip() in names:
                        os.kill(int(entry.name), number)
        except OSError:
            pass
"""


def become(person: Person) -> list[str]:
    """Return the command prefix that gives a process the account's rights only."""
    return ["setpriv", f"--reuid={person.uid}", f"--regid={person.uid}", "--clear-groups", "--"]


@contextmanager
def sabotage(person: Person, number: signal.Signals, *more: str) -> Iterator[None]:
    """Send a signal to each process of the account that runs one of PROGRAMS or `more`, as fast as it can."""
    loop = subprocess.Popen(
        [*become(person), PYTHON, "-c", LOOP, str(int(number)), *PROGRAMS, *more],
        stdout=subprocess.PIPE, cwd="/", text=True,
    )  # fmt: skip
    try:
        assert loop.stdout is not None
        assert loop.stdout.readline() == "ready\n"
        yield
    finally:
        loop.kill()
        loop.wait()
        subprocess.run(["pkill", "-CONT", "-u", str(person.uid)], check=False)


def descriptors(uid: int, name: str) -> dict[int, str]:
    """Return the descriptors of the account's processes with this name, and their targets."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == uid and (folder / "comm").read_text().strip() == name:
                found |= {int(entry.name): str(entry.readlink()) for entry in (folder / "fd").iterdir()}
    return found
