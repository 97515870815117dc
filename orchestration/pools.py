"""Names of Prefect's work pools. Does not import Prefect."""

from __future__ import annotations

PROCESSES = "processes"  # Prefect's process pool, where each run is a process
OURS = ("provider-*", "operator-*", PROCESSES)  # patterns of our pools, for Prefect's automations


def provider_pool(cluster: str) -> str:
    """Return the pool of a cluster's supervisor."""
    return f"provider-{cluster}"


def operator_pool(name: str) -> str:
    """Return the pool of the operator's process. `name` is the name of the operator's block."""
    return f"operator-{name}"
