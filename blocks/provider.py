"""Configuration of one cluster's flows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from blocks.benchmarks import Benchmarks
from blocks.grid import Grid, GridBlock, Services, Wallet
from blocks.slurm_login import SlurmLogin
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.chain.book import Address
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Label, Prices
from deepgrid.provider.session import GIB, LOG_RATE_LABEL, SESSIONS_LABEL, ProviderSettings
from deepgrid.slurm.setup.guards import check_gaps

WeiText = Annotated[str, Field(pattern="^[0-9]{1,77}$")]  # JSON numbers lose wei


class Provider(GridBlock):
    """A provider's cluster: its grid, wallet, login node, prices and own labels. Named by the cluster."""

    _block_type_name = "deepgrid Provider"
    _block_type_slug = "deepgrid-provider"

    cluster: str = Field(description="Name of the cluster; also its `name` label.")
    grid: Grid
    wallet: Wallet
    login: SlurmLogin
    services: Services | None = Field(default=None, description="Empty for the URL in the address book.")
    gpu_wei_per_minute: WeiText = Field(description="Price per GPU and minute, in wei of credit.")
    cpu_wei_per_minute: WeiText = Field(description="Price per CPU and minute, in wei of credit.")
    mem_wei_per_mb_minute: WeiText = Field(description="Price per MB of memory and minute, in wei of credit.")
    labels: dict[str, str] = Field(default_factory=dict, description="Own labels that customers can request.")
    benchmarks: Benchmarks | None = None
    """How to measure the cluster; empty for the defaults."""
    state: Path = Field(description="Folder of the supervisor for its cursor on the chain.")
    refused_customers: list[Address] = Field(default_factory=list)
    """Wallet addresses of customers whose jobs this cluster refuses."""
    max_cut_percent: int = Field(default=20, ge=0, le=100)
    """Highest platform cut, in percent of a job's cost, at which jobs are claimed and run."""
    claim_stays_s: float = Field(default=5.0, ge=0)
    """Seconds, by the timestamps of blocks, after which no reorganisation undoes a claim."""
    metrics_host: str = Field(default="127.0.0.1", description="Address of the endpoint for health and metrics.")
    metrics_port: int = Field(default=0, ge=0, le=65535, description="Its port; 0 for no endpoint.")
    log_kib_per_s: int = Field(default=256, ge=1, le=1024)
    """Most KiB per second of each job's output that are delivered."""
    output_quota_gib: int = Field(default=20, ge=0)
    """GiB of one customer's finished outputs that stay on the cluster; 0 for no quota."""
    sessions: bool = True
    """Let customers get into their own running jobs, by shells, commands and ports."""
    held_minutes: int = Field(default=60, ge=1)
    """Minutes that a job may wait in Slurm for an administrator, or with an unknown reason."""
    room_hours: int = Field(default=24, ge=1)
    """Hours that a job may wait in Slurm for room in a limit, or for nodes that are down."""
    trust_customers: bool = False
    """Run jobs even if the cluster lacks guards. Only for customers whom you know."""
    accepted_gaps: list[str] = Field(default_factory=list)
    """Names of guards that may be missing, as dps provider doctor shows them."""

    @field_validator("accepted_gaps")
    @classmethod
    def _are_guards(cls, names: list[str]) -> list[str]:
        try:
            check_gaps(names)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return names

    def settings(self) -> ProviderSettings:
        """Convert to the settings of `deepgrid.provider`."""
        labels = {"name": self.cluster, **self.labels, LOG_RATE_LABEL: str(self.log_kib_per_s)}
        labels[SESSIONS_LABEL] = "true" if self.sessions else "false"
        values = self.shared_with(ProviderSettings)
        values |= {
            "login": self.login.settings(),
            "storage": self.login.storage(),
            "containers": self.login.containers(),
        }
        values |= {name: tuple(values[name]) for name in ("refused_customers", "accepted_gaps")}
        values["labels"] = tuple(Label(key, value) for key, value in sorted(labels.items()))
        values["benchmarks"] = self.benchmarks.settings() if self.benchmarks else BenchmarkSettings()
        return ProviderSettings(
            book=self.grid.address_book,
            key_file=self.wallet.key_file,
            prices=Prices(int(self.gpu_wei_per_minute), int(self.cpu_wei_per_minute), int(self.mem_wei_per_mb_minute)),
            registries=tuple(self.login.registries),
            output_quota_bytes=self.output_quota_gib * GIB,
            services_url=self.services.url if self.services else "",
            **values,
        )
