"""Settings of a cluster's login node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """How to reach a cluster's login node and where the grid's files are there.

    `grid_root` is a folder on the login node, shared with the compute nodes; `job_account` is
    the Unix account that jobs run under, None for the login's own. Key files are paths, never keys.
    """

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts_file: Path
    grid_root: str
    partition: str = "main"
    job_account: str | None = None
    connect_timeout_s: float = 10.0
    command_timeout_s: float = 30.0
    max_channels: int = 8
