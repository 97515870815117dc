"""The two clusters of the one-machine grid: what they have, what they ask for it, how they praise it."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepgrid.lifecycle.job import Prices
from deployments.onemachine.slurm import ClusterSpec


@dataclass(frozen=True)
class Offer:
    """A cluster, its prices (wei of credit) and its own labels."""

    spec: ClusterSpec
    prices: Prices
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec.name


MILLICREDIT_WEI = 10**15
MICROCREDIT_WEI = 10**12

OFFERS = (
    Offer(
        ClusterSpec("alpha", nodes=2, cpus_per_node=4, mem_per_node_mb=8000),
        Prices(
            gpu_wei_per_minute=0, cpu_wei_per_minute=950 * MILLICREDIT_WEI, mem_wei_per_mb_minute=80 * MICROCREDIT_WEI
        ),
        {"region": "ch", "network": "ethernet"},
    ),
    Offer(
        ClusterSpec("beta", nodes=2, cpus_per_node=8, mem_per_node_mb=16000, gpus_per_node=2),
        Prices(
            gpu_wei_per_minute=17_000 * MILLICREDIT_WEI,
            cpu_wei_per_minute=1900 * MILLICREDIT_WEI,
            mem_wei_per_mb_minute=160 * MICROCREDIT_WEI,
        ),
        {"region": "fr", "network": "infiniband"},
    ),
)
