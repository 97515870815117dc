"""Settings of measurements: which part of a cluster, for how long, with which options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from deepgrid.errors import ConfigurationError

Program = Literal["machine", "hpl", "network", "storage"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
VOLUMES = ("scratch", "shared-tmp", "shared-world-tmp", "disk-tmp", "disk-world-tmp")


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """The defaults are for a real cluster; `docs/how-to/benchmark.md` explains each.

    An empty `partition` means the partition of the grid's jobs. `hpl_mxp` is the command that runs HPL-MxP with HPL.dat
    on one GPU per rank. `speedtest` is a command that prints a report of Ookla's client. Empty ones are not run.
    """

    memory_share: float = 0.5
    hpl_seconds: int = 1800
    gflops_per_cpu: float = 20.0
    block_size: int = 192
    hpl_mxp: str = ""
    cpus_per_rank: int = 1
    fio_size_mb: int = 4096
    fio_seconds: float = 10.0
    volumes: tuple[str, ...] = VOLUMES
    mpi_options: str = "--mca pml ob1 --mca btl self,vader,tcp"
    python: str = "/usr/bin/python3"
    speedtest: str = ""
    partition: str = ""
    time_limit_minutes: int = 120
    wait_minutes: int = 720

    def __post_init__(self) -> None:
        unknown = [volume for volume in self.volumes if volume not in VOLUMES]
        if unknown:
            raise ConfigurationError(
                f"{unknown[0]!r} is not a volume that can be measured.", next_step=f"Use {', '.join(VOLUMES)}."
            )
        if not 0 < self.memory_share <= 1:
            raise ConfigurationError("The share of memory for HPL must be above 0 and at most 1.")
