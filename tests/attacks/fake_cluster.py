"""A login node with the fake Slurm: its commands in a folder, and a login that has this folder first in PATH."""

from __future__ import annotations

import ast
import asyncio
import marshal
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from deepgrid.slurm.ssh.channel import MARK, CommandResult, with_marker

Job = dict[str, Any]
PROGRAMS = ("squeue", "sacct", "sinfo", "scontrol", "scancel", "sacctmgr", "sbatch", "sdiag", "sstat")
INTRUDER = "intruder"  # the program that hostile texts try to run


def slurm_job(slurm_id: int, user: int, name: str, comment: str, state: str, **columns: object) -> Job:
    """Return a job of the fake Slurm. `columns` override the default values."""
    return {
        "jobid": slurm_id, "userid": user, "name": name, "comment": comment, "state": state,
        "submit": 1, "start": None, "end": None, "exit": 0, "limit": 5,
        "restarts": 0, "nodes": "", "reason": "None", "account": "", "workdir": "/",
    } | columns  # fmt: skip


@dataclass
class FakeSlurm:
    """Its commands are in `folder`/bin. `complaints` maps a command to the error that it prints before it fails."""

    folder: Path
    jobs: list[Job] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    complaints: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bin = self.folder / "bin"
        self._bin.mkdir()
        program = self._bin / "fake_slurm.py"
        source = (files("tests.attacks") / program.name).read_text()
        program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{source}")
        program.chmod(0o755)
        for name in (*PROGRAMS, INTRUDER):
            (self._bin / name).symlink_to(program.name)
        (self._bin / "calls").touch()
        (self._bin / "calls").chmod(0o666)

    @property
    def intruder(self) -> str:
        """The path of a command that the product never runs."""
        return str(self._bin / INTRUDER)

    def write(self) -> None:
        """Let the commands answer with this state from now on."""
        state = {"jobs": self.jobs, "answers": self.answers, "complaints": self.complaints}
        (self._bin / "state").write_bytes(marshal.dumps(_latin(state)))

    def calls(self, *programs: str) -> list[tuple[str, int, list[str]]]:
        """Return the calls so far, with the user id of each caller."""
        found = [ast.literal_eval(line) for line in (self._bin / "calls").read_text().splitlines()]
        return [(program, user, argv) for program, user, argv in found if program in programs]


class LocalLogin:
    """Runs commands on this machine like sshd with a login shell, with the fake Slurm first in PATH."""

    def __init__(self, folder: Path) -> None:
        self._home = folder / "home"
        self._home.mkdir(exist_ok=True)
        self._env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(self._home), "SLURM_CONF": "/dev/null"}

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", with_marker(argv), stdin=pipe, stdout=pipe, stderr=pipe, env=self._env, cwd=self._home
        )
        out, complaint = await process.communicate(stdin)
        return CommandResult(process.returncode or 0, out.partition(MARK)[2], complaint.partition(MARK)[2])

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _latin(value: Any) -> Any:
    """Return the same value with each byte of its texts as one character, which loads faster."""
    if isinstance(value, dict):
        return {name: _latin(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_latin(one) for one in value]
    return value.encode(errors="surrogateescape").decode("latin-1") if isinstance(value, str) else value
