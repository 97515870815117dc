"""The shape of a job for which prices are shown: what is typed in the estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.cluster_offers import Cluster


@dataclass
class Shape:
    """What a job asks for, as it is typed in the estimator."""

    texts: dict[str, str] = field(
        default_factory=lambda: {"tasks": "1", "cpus": "1", "memory": "1000", "gpus": "0", "credits": "100"}
    )

    def number(self, name: str, least: int) -> int:
        """A number that is typed. Raises InputError."""
        text = self.texts[name]
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= least):
            raise InputError(f"{text!r} is not a number of {name} from {least} on.")
        return int(text)

    def rate(self, cluster: Cluster) -> Decimal:
        """Credits per minute at a cluster. Raises InputError."""
        return cluster.rate(
            tasks=self.number("tasks", 1), cpus_per_task=self.number("cpus", 1),
            memory_mb_per_cpu=self.number("memory", 1), gpus=self.number("gpus", 0),
        )  # fmt: skip

    @property
    def words(self) -> str:
        """The shape in words."""
        texts = self.texts
        return f"{texts['tasks']} x {texts['cpus']} CPU, {texts['memory']} MB per CPU, {texts['gpus']} GPU"
