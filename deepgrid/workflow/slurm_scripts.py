"""Warnings about commands that were pasted from Slurm's batch scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def advice_on_command(command: str) -> Iterator[str]:
    """Yield a warning for each option, program and use of srun that does not do here what it does in a batch script."""
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


def _options_in(line: str) -> list[str]:
    """Return the names of the options in a line of #SBATCH, up to its comment."""
    return _OPTION.findall(line.partition(" #")[0].strip())
