"""The key files of the one-machine grid's parties, and the plan of their registration at Prefect, as plain values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from deployments.release import release
from orchestration.pools import operator_pool, provider_pool

ADMIN = "admin"  # deploys the contracts and mints credits
OPERATOR = "operator"  # assigns jobs, approves providers
CUSTOMER = "customer"

OPERATOR_NAME = "grid"  # of its blocks
REGISTERED = "deepgrid_registered"  # Prefect variable with the digest of the registered plan

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class KeyRing:
    """The key files in `folder`, by the name of the party. A provider has the name of its cluster."""

    folder: Path
    providers: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (ADMIN, OPERATOR, CUSTOMER, *self.providers)

    def file(self, name: str) -> Path:
        return self.folder / name


class ClusterPlan(BaseModel):
    """The fields of one cluster's blocks: `blocks.Wallet`, `SlurmLogin`, `Benchmarks`, and `Provider` without these."""

    name: str
    wallet: dict[str, Any]
    login: dict[str, Any]
    benchmarks: dict[str, Any]
    provider: dict[str, Any]


class Plan(BaseModel):
    """The whole plan: paths and addresses, no secrets. `wallet` and `operator` are fields of the operator's blocks."""

    book: Path
    services_url: str
    wallet: dict[str, Any]
    operator: dict[str, Any]
    clusters: list[ClusterPlan]

    @property
    def pools(self) -> list[str]:
        """Work pools: one per process that runs flows."""
        return [operator_pool(OPERATOR_NAME), *(provider_pool(cluster.name) for cluster in self.clusters)]

    def digest(self) -> str:
        """Return a digest of the plan, and of the code whose description Prefect stores."""
        digest = hashlib.sha256(f"{self.model_dump_json()}{release()}".encode())
        sources = [path for folder in ("blocks", "flows") for path in (REPOSITORY / folder).rglob("*.py")]
        for source in sorted([*sources, *(REPOSITORY / "deployments").rglob("prefect.yaml")]):
            digest.update(source.read_bytes())
        return digest.hexdigest()
