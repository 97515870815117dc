"""What a look at a node found for jobs: container runtimes, storage clients, networks, memory limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

FEATURE = "feature "  # begins each line of a node's answer that names a feature


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """The features of one node by name, such as `containers.apptainer`, `storage.s3` and `network.pasta`."""

    node: str
    found: frozenset[str]

    @classmethod
    def parse(cls, node: str, lines: Iterable[str]) -> Self:
        """Return the features that the lines of a node's answer name. Other lines are skipped."""
        return cls(node, frozenset(line.removeprefix(FEATURE).strip() for line in lines if line.startswith(FEATURE)))
