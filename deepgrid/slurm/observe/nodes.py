"""The partition's nodes: the argument list of sinfo, and the parser of its output."""

from __future__ import annotations

import re

from deepgrid.lifecycle.job import Hardware
from deepgrid.slurm.observe.commands import COMMAND_PREFIX, columns, is_id


class Sinfo:
    """The partition's nodes."""

    @staticmethod
    def argv(partition: str) -> list[str]:
        return [*COMMAND_PREFIX, "sinfo", "-h", "-N", "-p", partition, "-o", "%N|%c|%m|%G|%T|%a"]

    @staticmethod
    def parse(text: str, *, responding_only: bool = True) -> Hardware:
        """One figure per node, ordered by node name. `responding_only` omits nodes that do not respond (`*`)."""
        nodes = {}
        for name, cpus, memory, gres, state, _ in columns(text, 6, numeric=False):
            if is_id(cpus) and not (responding_only and "*" in state):
                nodes[_natural(name)] = (count_gpus(gres), int(cpus), memory_mb(memory))
        figures = [nodes[name] for name in sorted(nodes)]
        gpus, cpus_each, memories = zip(*figures, strict=True) if figures else ((), (), ())
        return Hardware(gpus, cpus_each, memories)

    @staticmethod
    def is_up(text: str) -> bool:
        """Whether the partition takes jobs."""
        return any(row[5] == "up" for row in columns(text, 6, numeric=False))


def count_gpus(gres: str) -> int:
    """GPUs in a node's `Gres`: `gpu:a100:4(S:0-1),gpu:2` -> 6."""
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
    """A sort key that puts `n2` before `n10`."""
    parts = re.split(r"([0-9]{1,18})", name)  # every second part is a number
    return tuple((0, int(part)) if place % 2 else (1, part) for place, part in enumerate(parts) if part)
