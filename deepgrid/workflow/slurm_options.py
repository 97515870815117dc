"""The options of a batch script and of its shell, and the numbers in their values, as sbatch reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import ceil

_SHORT = {
    "n": "ntasks", "c": "cpus-per-task", "N": "nodes", "G": "gpus", "J": "job-name", "t": "time", "a": "array",
    "o": "output", "e": "error", "p": "partition", "D": "chdir",
}  # fmt: skip
_ALONE = ("exclusive", "overcommit", "oversubscribe", "requeue", "no-requeue", "hold", "wait", "parsable", "contiguous")
_MEMORY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(?:([KMGT])(?:i?B?)?)?", re.IGNORECASE | re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_LETTERS, _NAME = re.compile(r"-[A-Za-z]+"), re.compile(r"[a-z-]+")
_TYPE = re.compile(r"[\w.-]+", re.ASCII)
_SOCKETS = re.compile(r"\(S:[0-9,-]*\)")  # how Slurm's own lists of GPUs continue
_BETWEEN = re.compile(r",(?![^(]*\))")


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of one line: `--name=value`, `--name value`, `-n 4`, `-n4`."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            continue
        if not word.startswith("--"):
            letter, value = word[1], word[2:]
            name, equals = _SHORT.get(letter, letter), value
        if not equals and name not in _ALONE and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def count(text: str) -> int | None:
    """Return a whole number; None for anything else."""
    return int(text) if _COUNT.fullmatch(text) else None


def megabytes(text: str) -> int | None:
    """Return an amount of memory in MB, rounded up. Without a unit it is in MB, as for sbatch."""
    found = _MEMORY.fullmatch(text)
    if not found:
        return None
    amount = Decimal(found[1]) * Decimal(1024) ** ("KMGT".index((found[2] or "M").upper()) - 1)
    return ceil(amount)


def shell_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options of a shell that `set` has as well, and those that are left out. Steps need no login shell."""
    kept: list[str] = []
    left_out: list[str] = []
    waiting = [word for word in words if word not in ("-", "--", "--login")]
    while waiting:
        word = waiting.pop(0)
        if not _LETTERS.fullmatch(word):
            left_out.append(word)
            continue
        for letter in word[1:].replace("l", ""):
            if letter == "o" and waiting and _NAME.fullmatch(waiting[0]):
                kept += ["-o", waiting.pop(0)]
            else:
                (kept if letter in "euxvf" else left_out).append(f"-{letter}")
    return kept, left_out


def gpus(name: str, text: str) -> tuple[int, list[str], list[str]] | None:
    """Return the number of GPUs in the value of an option, their types, and resources that are no GPUs.

    `name` is the option: `gres` lists resources of all kinds. None for a value that is not understood.
    """
    number = 0
    types: list[str] = []
    others: list[str] = []
    for part in _BETWEEN.split("" if text == "none" else text):
        kind, *more = _SOCKETS.sub("", part).split(":")
        if name == "gres":
            if kind.removeprefix("gres/") != "gpu":
                others.append(part)
                continue
        else:
            more = [kind, *more]
        if more and (found := count(more[-1])) is not None:
            more.pop()
        else:
            found = 1
        if len(more) > 1 or not all(_TYPE.fullmatch(one) for one in more):
            return None
        number, types = number + found, types + more
    return number, types, [other for other in others if other]
