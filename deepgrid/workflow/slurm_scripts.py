"""Warnings about commands that were pasted from Slurm's batch scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

FIELDS = {
    "resources.tasks of the job and of run": ("ntasks", "n", "ntasks-per-node"),
    "resources.cpusPerTask": ("cpus-per-task", "c"),
    "resources.memPerCpu": ("mem-per-cpu", "mem", "mem-per-gpu"),
    "resources.gpus of the job, and resources.gpusPerTask of run": (
        "gpus", "G", "gres", "gpus-per-task", "gpus-per-node", "gpus-per-socket",
    ),
    "name of the step": ("job-name", "J"),
    "enableLogging": ("output", "o", "error", "e", "open-mode"),
    "workDir": ("chdir", "D"),
    "env": ("export", "export-file"),
    "for, or a sweep": ("array", "a"),
    "--after or --after-any of dps submit": ("dependency", "d"),
    "--time of dps submit": ("time", "t", "time-min"),
    "--uses or --affinities of dps submit": (
        "partition", "p", "constraint", "C", "nodelist", "w", "exclude", "x", "qos", "q",
    ),
}  # fmt: skip
"""Fields, and the options of sbatch that they replace."""

_LINE = re.compile(r"^[ \t]*#SBATCH[ \t](.*)$", re.MULTILINE)
_OPTION = re.compile(r"(?:^|(?<=[ \t]))(-[A-Za-z]|--[a-z-]+)")
_OTHER_LINE = re.compile(r"^(#PBS|#BSUB|#\$|#COBALT|#OAR)[ \t]+-", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_CALL = re.compile(
    r"(?:^|[;&|(`{!]|\b(?:then|do|else|if|while|until|exec|time|nohup|sudo|env|xargs|command)\b)[ \t]*"
    r"(?:[A-Za-z_]\w*=\S*[ \t]+)*(?:/\S*/)?(sbatch|salloc|qsub|bsub)(?=[ \t;&|)`\n<>]|$)",
    re.MULTILINE,
)
_INNER_MEMORY = re.compile(r"^[^#\n]*\bsrun[ \t][^\n;&|]*--mem-per-cpu", re.MULTILINE)


def advice_on_command(command: str, shell: str | None = None) -> Iterator[str]:
    """Yield a warning for each option, program and use of srun that does not do here what it does in a batch script."""
    yield from _advice_on_first_line(command, shell or "/bin/sh")
    for option in dict.fromkeys(option for line in _LINE.findall(command) for option in _options_in(line)):
        name = option.lstrip("-")
        field = next((field for field, options in FIELDS.items() if name in options), None)
        instead = f"use {field}" if field else "no field replaces it"
        yield f"contains #SBATCH {option}, which has no effect here; {instead}"
    for mark in dict.fromkeys(_OTHER_LINE.findall(command)):
        yield f"contains {mark} lines of another batch system, which have no effect here; use resources of the job"
    for program in dict.fromkeys(_CALL.findall(_COMMENT.sub("", command))):
        yield f"calls {program}, but a job cannot start further jobs on most clusters; use steps, launch or for"
    if _INNER_MEMORY.search(command):
        yield "calls srun with --mem-per-cpu, which Slurm may refuse inside a step; use --mem"


def _advice_on_first_line(command: str, shell: str) -> Iterator[str]:
    """Yield a warning if the first line names another interpreter than the one that runs the command."""
    words = command.partition("\n")[0].removeprefix("#!").split() if command.startswith("#!") else []
    if words and PurePath(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    name = PurePath(words[0]).name if words else ""
    if name and shell != "ENTRYPOINT" and name != PurePath(shell).name:
        does = f"write shell: /bin/{name}" if name in ("bash", "sh", "ash") else f"start {name} in the command"
        yield f"begins with #! and {name}, which has no effect here: {shell} runs it; {does}"


def _options_in(line: str) -> list[str]:
    """Return the names of the options in a line of #SBATCH, up to its comment."""
    return _OPTION.findall(line.partition(" #")[0].strip())
