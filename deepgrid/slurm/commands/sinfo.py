"""`sinfo`: the nodes of a partition."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepgrid.lifecycle.job import Hardware
from deepgrid.slurm.commands.query import COMMAND_PREFIX, columns, is_id

_TAKES_NO_JOBS = ("down", "drain", "fail", "error", "inval", "maint", "unknown")  # beginnings of the states of nodes


@dataclass(frozen=True, slots=True)
class Sinfo:
    """The partition's nodes."""

    partition: str

    def argv(self) -> list[str]:
        """Return the command line."""
        return [*COMMAND_PREFIX, "sinfo", "-h", "-N", "-p", self.partition, "-o", "%N|%c|%m|%G|%T|%a"]

    @staticmethod
    def parse(text: str) -> PartitionNodes:
        """Return the nodes that take jobs now, and all nodes."""
        rows = list(columns(text, 6, numeric=False))
        is_up = any(row[5] == "up" for row in rows)
        return PartitionNodes(is_up, _hardware(rows, usable_only=True), _hardware(rows, usable_only=False))


@dataclass(frozen=True, slots=True)
class PartitionNodes:
    """The nodes of a partition, ordered by node name. `usable` omits nodes that take no jobs now.

    These are drained, down or failing, or they do not respond (`*`).
    """

    is_up: bool
    usable: Hardware
    all: Hardware


def _hardware(rows: list[list[str]], *, usable_only: bool) -> Hardware:
    nodes = {}
    for name, cpus, memory, gres, state, _ in rows:
        if is_id(cpus) and not (usable_only and ("*" in state or state.startswith(_TAKES_NO_JOBS))):
            nodes[_natural(name)] = (count_gpus(gres), int(cpus), memory_mb(memory))
    figures = [nodes[name] for name in sorted(nodes)]
    gpus, cpus_each, memories = zip(*figures, strict=True) if figures else ((), (), ())
    return Hardware(gpus, cpus_each, memories)


def count_gpus(gres: str) -> int:
    """Return GPUs in a node's `Gres`: `gpu:a100:4(S:0-1),gpu:2` -> 6."""
    bare = re.sub(r"\([^)]*\)", "", gres)
    counts = [re.fullmatch(r"gpu(?::[^:]+)??(?::([0-9]{1,6}))?", item.strip()) for item in bare.split(",")]
    return sum(int(found[1] or 1) for found in counts if found)


def memory_mb(text: str) -> int:
    """Slurm's memory figure in MB: `64000`, `64000M`, `62.50G`, `1T`, `8000+`; 0 for any other text."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGTP]?)\+?", text.strip())
    if not found:
        return 0
    scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}[found[2]]
    return int(float(found[1]) * scale)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts `n2` before `n10`."""
    parts = re.split(r"([0-9]{1,18})", name)  # every second part is a number
    return tuple((0, int(part)) if place % 2 else (1, part) for place, part in enumerate(parts) if part)
