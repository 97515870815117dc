"""The two clusters of the one-machine grid: their hardware, prices and labels."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepgrid.lifecycle.job import Prices
from deployments.onemachine.slurm import ClusterSpec

HPL = {"hpl_seconds": 1, "gflops_per_cpu": 0.03, "block_size": 64}
SHORT = {**HPL, "fio_size_mb": 16, "fio_seconds": 0.1, "time_limit_minutes": 5, "wait_minutes": 10}


@dataclass(frozen=True)
class Offer:
    """A cluster, its prices (wei of credits) and its own labels. `mem` is the memory of a node in MB."""

    spec: ClusterSpec
    prices: Prices
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def benchmarks(self) -> dict[str, str | int | float]:
        """Settings of its measurement, as fields of `blocks.Benchmarks`: short, and as if nodes were separate machines.

        Ranks communicate over loopback, not over the shared memory of the one machine. With one rank per node,
        ranks do not wait for each other's CPU.
        """
        anybody = "--allow-run-as-root --bind-to none"  # the ranks run as root where the grid has no job account
        loopback = "--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"
        options = f"{anybody} {loopback} --mca mpi_yield_when_idle 1"
        return {**SHORT, "cpus_per_rank": self.spec.cpus_per_node, "mpi_options": options}

    @property
    def name(self) -> str:
        return self.spec.name


MILLICREDIT_WEI = 10**15
MICROCREDIT_WEI = 10**12

OFFERS = (  # prices per minute: of a GPU, a CPU, and a MB of memory
    Offer(
        ClusterSpec("alpha", nodes=2, cpus_per_node=4, mem_per_node_mb=8000, own_accounts=True, equipped=True),
        Prices(0, 950 * MILLICREDIT_WEI, 80 * MICROCREDIT_WEI),
        {"region": "ch", "network": "ethernet", "mem": "8000"},
    ),
    Offer(
        ClusterSpec(
            "beta",
            nodes=2,
            cpus_per_node=8,
            mem_per_node_mb=16000,
            gpus_per_node=2,
            own_accounts=True,
            equipped=True,
        ),
        Prices(17_000 * MILLICREDIT_WEI, 1900 * MILLICREDIT_WEI, 160 * MICROCREDIT_WEI),
        {"region": "fr", "network": "infiniband", "mem": "16000"},
    ),
)
