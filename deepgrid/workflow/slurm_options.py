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
_ALIASES = {"tasks-per-node": "ntasks-per-node"}
_NAMES = frozenset(
    """account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container
    container-id contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
    dependency distribution error exclude exclusive export export-file extra extra-node-info get-user-env gid
    gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs
    input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu
    mincpus network nice no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket open-mode output overcommit oversubscribe parsable partition power prefer
    priority profile propagate qos quiet reboot requeue reservation resv-ports segment signal sockets-per-node
    spread-job stepmgr switches tasks-per-node test-only thread-spec threads-per-core time time-min tmp tres-bind
    tres-per-task uid usage use-min-nodes verbose version wait wait-all-nodes wckey wrap""".split()  # noqa: SIM905 - as in SHELL_NAMES
)
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
        name = whole_name(name)
        if not equals and name not in _ALONE and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def whole_name(name: str) -> str:
    """Return the name of an option that sbatch takes for this one: an old name, or a beginning that no other has."""
    found = [name] if name in _NAMES else [one for one in _NAMES if len(name) > 1 and one.startswith(name)]
    whole = found[0] if len(found) == 1 else name
    return _ALIASES.get(whole, whole)


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
