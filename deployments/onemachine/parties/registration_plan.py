"""The plan of the one-machine grid's registration at Prefect, as plain values. Does not import Prefect."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel

from orchestration.pools import operator_pool, provider_pool

OPERATOR_NAME = "grid"
REGISTERED = "deepgrid_registered"  # Prefect variable with the digest of the registered plan

REPOSITORY = Path(__file__).resolve().parents[3]


class ClusterPlan(BaseModel):
    """One cluster's blocks; the fields are those of `blocks.Provider`, `blocks.SlurmLogin` and `blocks.Benchmarks`."""

    name: str
    address: str
    key_file: Path
    login: dict[str, str | int | None]
    prices: dict[str, str]
    labels: dict[str, str]
    benchmarks: dict[str, str | int | float]
    state: Path
    metrics_port: int
    trust_customers: bool
    accepted_gaps: list[str]
    claim_stays_s: float


class Plan(BaseModel):
    """The whole plan: paths and addresses, no secrets."""

    book: Path
    services_url: str
    operator_address: str
    operator_key: Path
    operator_state: Path
    operator_metrics_port: int
    clusters: list[ClusterPlan]

    @property
    def pools(self) -> list[str]:
        """Work pools: one per process that runs flows."""
        return [operator_pool(OPERATOR_NAME), *(provider_pool(cluster.name) for cluster in self.clusters)]

    def digest(self) -> str:
        """A digest of the plan, and of the code whose description Prefect stores."""
        digest = hashlib.sha256(self.model_dump_json().encode())
        sources = [path for folder in ("blocks", "flows") for path in (REPOSITORY / folder).rglob("*.py")]
        for source in sorted([*sources, *(REPOSITORY / "deployments").rglob("prefect.yaml")]):
            digest.update(source.read_bytes())
        return digest.hexdigest()
