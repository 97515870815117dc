"""Slurm clusters for the length of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.slurm import ClusterSpec, SlurmSite


@contextmanager
def running_site(state: Path, *clusters: ClusterSpec) -> Iterator[tuple[SlurmSite, ProcessTable]]:
    """Run the clusters for the length of the `with` block, and always stop them at its end."""
    site, table = SlurmSite(state, clusters), ProcessTable(state)
    try:
        site.start(table)
        yield site, table
    finally:
        site.stop(table)
