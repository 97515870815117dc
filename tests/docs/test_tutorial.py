"""The tutorial, followed exactly on its own grid: each command works and prints the output on the page."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.sessions import LEFT_OUT, sessions, typed

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

PAGE = "docs/tutorial/first-job.md"
FAILS = "dps: "  # the first output of a command that fails on the page


@dataclass
class Reader:
    """A person in a checkout, at one terminal. `run` and the examples are the real ones, the state is not."""

    folder: Path
    sourced: list[str] = field(default_factory=list)

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


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "run").symlink_to(ROOT / "run")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield (reader := Reader(tmp_path))
    reader.type("./run down")


def test_every_command_prints_what_the_page_shows(reader: Reader) -> None:
    for command, shown in (pair for block in sessions(PAGE) for pair in typed(block)):
        done = reader.type(command)
        assert (done.returncode == 0) != any(line.startswith(FAILS) for line in shown), (command, done)
        printed = {_shape(line) for line in (done.stdout + done.stderr).splitlines()}
        assert not [line for line in shown if line != LEFT_OUT and _shape(line) not in printed], (command, done)


def _shape(line: str) -> str:
    """Return a line without what differs from run to run: numbers, addresses, the name of the machine."""
    return re.sub(r"0x[0-9a-fA-F]+|\d[\d.,:]*", "#", line.replace(socket.gethostname(), "vm")).rstrip()
