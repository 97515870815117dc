"""Calls of our shell scripts on the login node. An answer that was cut off is recognised and refused."""

from __future__ import annotations

from importlib.resources import files

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.ssh.channel import CommandResult


def read_script(*names: str) -> str:
    """Return the text of these files of `deepgrid.slurm.remote`, joined to one script."""
    return "".join((files("deepgrid.slurm.remote") / name).read_text() for name in names)


def call(script: str, *arguments: object, interpreter: str = "sh") -> list[str]:
    """Return the command that runs a script's text with these arguments."""
    return [interpreter, "-c", script, "deepgrid", *map(str, arguments)]


def lines_of(text: str) -> list[str]:
    """Split at newlines only. Users' text may contain other characters at which `str.splitlines` would split."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def whole_answer(done: CommandResult) -> list[str]:
    """Return the lines of a script before its last line, `end`. Raises SlurmUnreachable when `end` is missing."""
    lines = lines_of(done.text)
    if not lines or lines.pop() != "end":
        raise SlurmUnreachable("The answer of the login node was cut off.")
    return lines
