"""Shell scripts of ours that run on the login node: how they are called, and whole answers told from half ones."""

from __future__ import annotations

from importlib.resources import files

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.ssh.channel import CommandResult


def read_script(*names: str) -> str:
    """The text of these files of this folder, as one script."""
    return "".join((files("deepgrid.slurm.remote") / name).read_text() for name in names)


def call(script: str, *arguments: object, interpreter: str = "sh") -> list[str]:
    """The command that runs a script's text with these arguments."""
    return [interpreter, "-c", script, "deepgrid", *map(str, arguments)]


def lines_of(text: str) -> list[str]:
    """Lines as the shell ends them. Users' text may hold what `str.splitlines` takes for more ends of lines."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def whole_answer(done: CommandResult) -> list[str]:
    """The lines that a script said before `end`, its last one. Raises SlurmUnreachable when that did not come."""
    lines = lines_of(done.text)
    if not lines or lines.pop() != "end":
        raise SlurmUnreachable("The login node gave half an answer.")
    return lines
