"""Configuration of a cluster's benchmarks."""

from __future__ import annotations

from pydantic import Field

from blocks.grid import GridBlock
from deepgrid.benchmark.settings import VOLUMES, BenchmarkSettings

DEFAULTS = BenchmarkSettings()


class Benchmarks(GridBlock):
    """Configuration of a cluster's benchmarks. The defaults suit a real cluster. Named by the cluster."""

    _block_type_name = "deepgrid Benchmarks"
    _block_type_slug = "deepgrid-benchmarks"

    single_node: bool = False
    """Measure each node alone, for clusters without a fast network: HPL per node, and no network labels."""
    ucx: bool = False
    """Let MPI use UCX, for InfiniBand and RoCE."""
    affinities: list[str] = Field(default_factory=list, max_length=32)
    """Network interfaces for UCX, as ucx_info -d names them, such as mlx5_0:1; empty: UCX chooses."""
    transport: str = ""
    """UCX transports, separated by commas, such as rc,self,sm; empty: UCX chooses."""
    unresponsive: bool = False
    """Submit for every node of the partition, including those that do not respond or take no jobs now."""
    samples: int = Field(default=DEFAULTS.samples, ge=1, le=20, description="Samples of each figure; 3 or more.")
    noisy_percent: float = Field(default=DEFAULTS.noisy_percent, gt=0)
    """Spread of a figure's samples, in percent of their median, above which its label gets a remark."""
    memory_share: float = Field(default=DEFAULTS.memory_share, gt=0, le=1)
    """Order of HPL's matrix, as a share of the largest that memory would hold."""
    hpl_seconds: int = Field(default=DEFAULTS.hpl_seconds, gt=0)
    """Approximate seconds that each sample of HPL may take; bounds its matrix."""
    gflops_per_cpu: float = Field(default=DEFAULTS.gflops_per_cpu, gt=0)
    """Expected GFLOPS of a CPU, for that bound."""
    block_size: int = Field(default=DEFAULTS.block_size, gt=0, description="HPL's block size NB.")
    hpl_mxp: str = DEFAULTS.hpl_mxp
    """Command that runs HPL-MxP with HPL.dat, one GPU per rank; for clusters with GPUs."""
    cpus_per_rank: int = Field(default=DEFAULTS.cpus_per_rank, gt=0)
    """CPUs of one MPI rank of HPL, for a BLAS with threads."""
    fio_size_mb: int = Field(default=DEFAULTS.fio_size_mb, gt=0, description="MiB of fio's file on each volume.")
    fio_seconds: float = Field(default=DEFAULTS.fio_seconds, gt=0)
    """Seconds of each of fio's four runs on a volume."""
    volumes: list[str] = Field(default=list(DEFAULTS.volumes), description=f"Which of {', '.join(VOLUMES)} to measure.")
    osu: str = DEFAULTS.osu
    """Where OSU's benchmarks are: module:NAME, path:/FOLDER or image:REFERENCE. Empty: in PATH, or mpi4py is used."""
    ior: str = DEFAULTS.ior
    """Where IOR is: module:NAME, path:/FOLDER or image:REFERENCE. Empty: in PATH, or fio is used."""
    ior_ranks_per_node: int = Field(default=DEFAULTS.ior_ranks_per_node, gt=0, description="MPI ranks of IOR per node.")
    mpi_options: str = DEFAULTS.mpi_options
    """More options of mpirun. The default applies only without ucx."""
    python: str = Field(default=DEFAULTS.python, description="A Python with mpi4py on the nodes.")
    speedtest: str = DEFAULTS.speedtest
    """Command that prints Ookla's JSON report; it contacts the Internet. Empty: not measured."""
    iperf3_server: str = DEFAULTS.iperf3_server
    """Host of an iperf3 server, if there is no speedtest; it is contacted. Empty: not measured."""
    iperf3_port: int = Field(default=DEFAULTS.iperf3_port, ge=1, le=65535, description="Port of that server.")
    iperf3_seconds: int = Field(default=DEFAULTS.iperf3_seconds, ge=1, le=60, description="Seconds of each run.")
    partition: str = DEFAULTS.partition
    """Partition of the same nodes to measure in; empty for the grid's."""
    time_limit_minutes: int = Field(default=DEFAULTS.time_limit_minutes, gt=0)
    """Time limit of each program."""
    wait_minutes: int = Field(default=DEFAULTS.wait_minutes, ge=0)
    """How long each program may wait for its turn in Slurm."""

    def settings(self) -> BenchmarkSettings:
        """Convert to the settings of `deepgrid.benchmark`."""
        lists = {"volumes": tuple(self.volumes), "affinities": tuple(self.affinities)}
        return BenchmarkSettings(**(self.shared_with(BenchmarkSettings) | lists))
