"""Settings of measurements: which part of a cluster, for how long, with which options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from deepgrid.errors import ConfigurationError

Program = Literal["machine", "hpl", "network", "storage", "internet"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
VOLUMES = ("scratch", "shared-tmp", "shared-world-tmp", "disk-tmp", "disk-world-tmp")
PLAIN_MPI = "--mca pml ob1 --mca btl self,vader,tcp"

_DEVICE = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}"
_TRANSPORTS = r"\^?[a-z0-9_]{1,32}(,[a-z0-9_]{1,32}){0,15}"
_SOURCE = r"module:[\w.+][\w.+/-]{0,199}|path:/[^\0\n]{0,400}|image:[\w./][\w.:/@+-]{0,400}"
_HOST = r"([A-Za-z0-9]([A-Za-z0-9.-]{0,252})|[0-9A-Fa-f:]{2,39})"


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """The defaults are for a real cluster; `docs/how-to/benchmark.md` explains each.

    An empty `partition` means the partition of the grid's jobs. `hpl_mxp` is the command that runs HPL-MxP with HPL.dat
    on one GPU per rank. `speedtest` is a command that prints a report of Ookla's client. Empty ones are not run.
    `osu` and `ior` say where these programs are: `module:NAME`, `path:/FOLDER` or `image:REFERENCE`. If empty, they are
    used where the nodes have them in PATH.
    """

    single_node: bool = False
    ucx: bool = False
    affinities: tuple[str, ...] = ()
    transport: str = ""
    unresponsive: bool = False
    samples: int = 3
    noisy_percent: float = 20.0
    memory_share: float = 0.5
    hpl_seconds: int = 600
    gflops_per_cpu: float = 20.0
    block_size: int = 192
    hpl_mxp: str = ""
    cpus_per_rank: int = 1
    fio_size_mb: int = 4096
    fio_seconds: float = 10.0
    volumes: tuple[str, ...] = VOLUMES
    osu: str = ""
    ior: str = ""
    ior_ranks_per_node: int = 1
    mpi_options: str = PLAIN_MPI
    python: str = "/usr/bin/python3"
    speedtest: str = ""
    iperf3_server: str = ""
    iperf3_port: int = 5201
    iperf3_seconds: int = 5
    partition: str = ""
    time_limit_minutes: int = 120
    wait_minutes: int = 720

    def __post_init__(self) -> None:
        self._check_volumes_and_figures()
        self._check_network()
        for name, source in (("osu", self.osu), ("ior", self.ior)):
            _check(name, source, _SOURCE, "Use module:NAME, path:/FOLDER or image:REFERENCE.")
        _check("iperf3_server", self.iperf3_server, _HOST, "Give the name or the address of a host.")

    def _check_volumes_and_figures(self) -> None:
        unknown = [volume for volume in self.volumes if volume not in VOLUMES]
        if unknown:
            raise ConfigurationError(
                f"{unknown[0]!r} is not a volume that can be measured.", next_step=f"Use {', '.join(VOLUMES)}."
            )
        if not 0 < self.memory_share <= 1:
            raise ConfigurationError("The share of memory for HPL must be above 0 and at most 1.")
        if not 1 <= self.samples <= 20:
            raise ConfigurationError("The number of samples must be 1 to 20.")

    def _check_network(self) -> None:
        for device in self.affinities:
            _check("affinities", device, _DEVICE, "Name network interfaces as ucx_info -d does, such as mlx5_0:1.")
        _check("transport", self.transport, _TRANSPORTS, "Name transports as ucx_info -d does, such as rc,self,sm.")
        if not self.ucx and (self.affinities or self.transport):
            raise ConfigurationError("Without ucx, affinities and transport have no effect.", next_step="Set ucx too.")
        if self.ucx and self.mpi_options != PLAIN_MPI and re.search(r"\bpml\b", self.mpi_options):
            raise ConfigurationError("With ucx, mpi_options must not choose a pml.", next_step="Remove --mca pml.")


def _check(name: str, value: str, pattern: str, next_step: str) -> None:
    """Raise ConfigurationError unless the value is empty or has the pattern."""
    if value and not re.fullmatch(pattern, value, re.ASCII):
        raise ConfigurationError(f"{value!r} cannot be the setting {name} of a benchmark.", next_step=next_step)
