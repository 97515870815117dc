"""A job's account as an attacker: commands outside its job, and requests from inside its jobs.

Requests without a Slurm command use libslurmfull.so by ctypes. They need Debian's /usr/bin/python3 (or any Python that
all accounts may run) and the library of Debian's `slurm-wlm-basic-plugins` or `slurm-client`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam

from tests.slurm.people import account
from tests.slurm.support import Box

ANSWERS_WITHIN_S = 40
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
# Processes of this group are the attacker's outside its jobs. No job has it; no account can leave or join it.
OUTSIDE = 1_900_000_000 + secrets.randbelow(100_000_000)

REQUESTS = """
import ctypes, glob, sys
slurm = ctypes.CDLL(glob.glob("/usr/lib/*/slurm-wlm/libslurmfull.so")[0], mode=ctypes.RTLD_GLOBAL)
slurm.slurm_init(None)
number = lambda text: ctypes.c_uint32(int(text, 0))
name, job, *rest = sys.argv[1:]
call = getattr(slurm, "slurm_" + name)
if call(number(job), *map(number, rest)):
    slurm.slurm_perror(name.encode())
    sys.exit(1)
"""

# Functions for payloads: requests with Slurm's numbers, and what the attacks repeat. A job continues for a while after
# a request that should end it, in case the request was refused or trapped.
PRELUDE = """ID=$SLURM_JOB_ID
request() { /usr/bin/python3 -I -S @REQUESTS@ "$@"; }
complete() { request complete_job "$ID" "$1"; sleep 20; }
again() { scontrol update "jobid=$ID" requeue=1; scontrol requeue "$ID"; sleep 20; }
"""


def missing() -> str:
    """Return what these attacks need and this machine lacks; empty if nothing is missing."""
    if os.getuid() != 0:
        return "accounts are made by root"
    if not shutil.which("setpriv") or not Path("/usr/bin/python3").exists():
        return "setpriv and a python3 that every account may run"
    return "" if any(Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so")) else "libslurmfull.so"


def requests_in(folder: Path) -> Path:
    """Install the program for requests, readable by all accounts."""
    program = folder / "requests.py"
    program.write_text(REQUESTS)
    program.chmod(0o755)
    return program


@dataclass(frozen=True)
class Attacker:
    """An account with jobs on a cluster."""

    name: str
    box: Box
    requests: Path

    @property
    def uid(self) -> int:
        return getpwnam(self.name).pw_uid

    def run(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as the account on the login node. Slurm decides whether it succeeds."""
        try:
            return subprocess.run(
                self._command(argv), env=self._environment, cwd="/", input=stdin, capture_output=True, text=True,
                check=False, timeout=ANSWERS_WITHIN_S, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", "no answer in time")

    def request(self, name: str, *numbers: int) -> subprocess.CompletedProcess[str]:
        """Send a request through Slurm's library, such as `complete_job`."""
        return self.run("/usr/bin/python3", "-I", "-S", str(self.requests), name, *map(str, numbers))

    def payload(self, body: str) -> str:
        """Return a batch script that can use PRELUDE."""
        return f"#!/bin/bash\n{self._prelude}{body}\n"

    def bash(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a piece of bash that can use PRELUDE and sets ID itself."""
        return self.run("bash", "-c", f"{self._prelude}{text}")

    @property
    def _prelude(self) -> str:
        return PRELUDE.replace("@REQUESTS@", str(self.requests))

    def _command(self, argv: tuple[str, ...]) -> list[str]:
        uid = str(self.uid)
        return ["setpriv", "--reuid", uid, "--regid", uid, "--groups", str(OUTSIDE), *argv]

    @property
    def _environment(self) -> dict[str, str]:
        own = {"PATH": "/usr/bin:/bin", "HOME": "/", "USER": self.name, "SBATCH_OUTPUT": "/dev/null"}
        return own | self.box.site.environment(self.box.name)


@contextmanager
def attacker(box: Box, requests: Path) -> Iterator[Attacker]:
    """Yield a new account on this cluster.

    No process and no file of it outlives the test, except files in the cluster.
    """
    with account() as name:
        who = Attacker(name, box, requests)
        try:
            yield who
        finally:
            remove_traces(who.uid)


def remove_traces(uid: int) -> None:
    """Kill all processes of an account, stopped ones too, and remove its files in folders that all accounts share."""
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
    subprocess.run([*become, "sh", "-c", "kill -KILL -1"], check=False, capture_output=True)  # so that none can fork
    own = ["-mindepth", "1", "-maxdepth", "1", "-uid", str(uid), "-exec", "rm", "-rf", "--", "{}", "+"]
    subprocess.run(["find", *SHARED_FOLDERS, *own], check=False, capture_output=True)  # others use these folders too
