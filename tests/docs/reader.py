"""A person who follows a page at a terminal, command by command, and compares what is printed with the page."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT
from tests.docs.sessions import LEFT_OUT, sessions, typed

FAILS = "dps: "  # the first output of a command that fails on the page


@dataclass
class Reader:
    """A person in a checkout, at one terminal. The checkout is the real one, its state is not."""

    folder: Path
    sourced: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("run", "examples", ".venv"):
            (self.folder / name).symlink_to(ROOT / name)

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        if command.startswith("source "):
            self.sourced.append(command)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DEEPGRID_STATE": str(self.folder / ".grid"),
        }
        return subprocess.run(
            ["bash", "-c", "\n".join([*self.sourced, command])],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip

    def follow(self, page: str) -> None:
        """Type every command of a page. Each prints the lines on the page, and fails only if these show an error."""
        for command, shown in (pair for block in sessions(page) for pair in typed(block)):
            done = self.type(command)
            assert (done.returncode == 0) != any(line.startswith(FAILS) for line in shown), (command, done)
            printed = {_shape(line) for line in (done.stdout + done.stderr).splitlines()}
            assert not [line for line in shown if line != LEFT_OUT and _shape(line) not in printed], (command, done)


def _shape(line: str) -> str:
    """Return a line without what differs from run to run: numbers, addresses, the name of the machine."""
    return re.sub(r"0x[0-9a-fA-F]+|\d[\d.,:]*", "#", line.replace(socket.gethostname(), "vm")).rstrip()
