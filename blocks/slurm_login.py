"""Configuration of a supervisor's access to its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from blocks.grid import GridBlock
from deepgrid.errors import ConfigurationError
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings, parse_jump, split_hosts


class SlurmLogin(GridBlock):
    """The login node of a Slurm cluster, its partition, and the grid's folders there."""

    _block_type_name = "deepgrid Slurm Login"
    _block_type_slug = "deepgrid-slurm-login"

    host: str
    """Host name or address of the login node; several, separated by commas: a host that answers is used."""
    port: int = Field(default=22, description="Port of its sshd.")
    user: str = Field(description="Account of the supervisor on the login node.")
    key_file: Path = Field(description="Path of the supervisor's SSH private key (mode 0600).")
    known_hosts_file: Path = Field(description="known_hosts file with the login node's host key; it is verified.")
    jump_host: str = Field(default="", description="Jump host before the login node: [USER@]HOST[:PORT].")
    jump_key_file: Path | None = Field(default=None, description="Path of the private key for it; empty: key_file.")
    jump_known_hosts_file: Path | None = None
    """known_hosts file with the jump host's key; empty: known_hosts_file."""
    keepalive_s: int = Field(
        default=15,
        ge=1,
        description="Seconds after which an idle connection sends something: firewalls drop idle ones.",
    )
    grid_root: str = Field(description="Folder on the login node, shared with the compute nodes, for the grid.")
    storage_root: str = Field(description="Folder on the compute nodes below which jobs get their storage.")
    partition: str = Field(default="main", description="Slurm partition for the grid's jobs.")
    slurm_path: str = Field(
        default="",
        description="Folder of Slurm's commands on the login node, such as /opt/slurm/bin; several with colons between"
        " them. Empty: the PATH of the supervisor's login shell.",
    )
    slurm_timeout_s: float = Field(
        default=20.0, description="Seconds after which a command of Slurm counts as not answered, at most 300."
    )
    job_account: str | None = Field(
        default=None,
        description="Unix account of jobs whose customers have none of their own below. Empty: those customers are"
        " refused; without any account below, all jobs run as the supervisor's.",
    )
    account_table: dict[str, str] = Field(default_factory=dict)
    """Unix accounts of single customers, by wallet address."""
    account_pattern: str = Field(
        default="",
        description="Unix account of each other customer, such as ds-{address} (0x and 40 digits in lower case),"
        " ds-{digits} (without 0x) or ds-{digits:24} (the first 24).",
    )
    become: Literal["uid", "sudo"] = "uid"
    """How the supervisor submits for another account: uid (sbatch --uid, as root) or sudo."""
    submit_wrapper: str = Field(
        default="",
        description="Path on the login node of deepgrid-sbatch, which root owns, for become sudo. Empty: customers'"
        " accounts submit their jobs themselves, which requires trust_customers.",
    )
    own_account: str | None = None
    """Unix account of the supervisor's own jobs, such as benchmarks; empty: job_account."""

    apptainer: str = Field(default="apptainer", description="Name or path of Apptainer's program on the nodes.")
    hosted_images: str = "/opt/software"
    """Folder on the nodes with the provider's own container images."""
    local_images: dict[str, str] = Field(default_factory=dict)
    """Files or folders of images that the nodes have, by name: ubuntu:latest to a path. They are not downloaded."""
    pyxis: bool = Field(default=False, description="Whether srun has the Pyxis plugin; without it, scripts run Enroot.")
    mirrors: dict[str, str] = Field(default_factory=dict)
    """Mirrors of registries for the nodes, by the registry's name: docker.io to https://HOST[:PORT] or http://."""
    registries: list[str] = Field(default_factory=list)
    """Registries that the supervisor may query for working folders of images; otherwise nodes look."""

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        try:
            self.settings()
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return self

    def settings(self) -> LoginSettings:
        """Convert to the settings of `deepgrid.slurm`."""
        customers = CustomerAccounts(self.account_table, self.account_pattern)
        values = self.shared_with(LoginSettings) | {"accounts": customers, "become": Become(self.become)}
        jump_files = self.jump_key_file or self.key_file, self.jump_known_hosts_file or self.known_hosts_file
        first, *others = split_hosts(self.host)
        values |= {"host": first, "other_hosts": tuple(others)}
        values |= {"jump": parse_jump(self.jump_host, self.user, *jump_files)}
        values |= {"job_account": self.job_account or None, "own_account": self.own_account or None}
        return LoginSettings(**values)

    def storage(self) -> StoragePaths:
        """Return the paths of jobs' storage."""
        return StoragePaths.under(self.storage_root)

    def containers(self) -> Containers:
        """Return the configuration of containers for jobs."""
        return Containers(
            apptainer=self.apptainer,
            hosted=self.hosted_images,
            pyxis=self.pyxis,
            local_images=self.local_images,
            mirrors=self.mirrors,
        )
