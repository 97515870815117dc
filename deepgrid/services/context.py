"""The context of every request handler: the parts of the service, and cached chain reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Request

from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job
from deepgrid.services.admission import Admission, ScriptChecks
from deepgrid.services.chain_view import ChainView
from deepgrid.services.fence import Fence
from deepgrid.services.following import Hub
from deepgrid.services.refusal import Refusal
from deepgrid.services.service_metrics import ServiceMetrics
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.nonces import Nonces
from deepgrid.services.storage.vault import Vault

MINIMUM_FOR_S = 60

JobId = Annotated[int, Path(ge=1, lt=2**63)]


@dataclass
class Context:
    """The parts of one running service. `clock` gives unix seconds."""

    domain: Domain
    chain: ChainView
    database: Database
    vault: Vault
    clock: Callable[[], int]
    max_log_bytes: int
    admission: Admission
    checks: ScriptChecks
    debug_scripts: bool = False
    fence: Fence = field(default_factory=Fence)
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    reading_jobs: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while new jobs of the chain are read
    all_checks: list[ScriptChecks] = field(init=False)  # that metrics count
    hub: Hub = field(init=False)
    nonces: Nonces = field(init=False)
    _minimum: tuple[int, int] | None = None  # the contract's value, and the time until which it is cached

    def __post_init__(self) -> None:
        self.all_checks = [self.checks]
        self.hub = Hub(self)
        self.nonces = Nonces(self.database)
        self.metrics.load = self._load

    def _load(self) -> dict[str, float]:
        """What the service does now, for its metrics."""
        checks = self.all_checks
        return {
            "deepgrid_services_checks_running": sum(one.running for one in checks),
            "deepgrid_services_checks_waiting": sum(one.waiting for one in checks),
            "deepgrid_services_followers": self.hub.all_followers,
            "deepgrid_services_followed_logs": self.hub.followed_logs,
            "deepgrid_services_database_connections": self.database.connections,
        }

    async def job(self, job_id: int) -> Job:
        """The job as the chain has it. Refuses with 404 or 503."""
        try:
            return await self.chain.job(job_id)
        except NotFound:
            raise Refusal(404, f"there is no job {job_id}") from None
        except ChainError:
            raise chain_is_silent() from None

    async def jobs(self, job_ids: Sequence[int]) -> list[Job]:
        """These jobs in this order, read at once. Refuses with 404 if one does not exist, or 503."""
        try:
            return await self.chain.jobs(job_ids)
        except NotFound:
            raise Refusal(404, "one of the jobs does not exist") from None
        except ChainError:
            raise chain_is_silent() from None

    async def minimum_wei(self) -> int:
        """The minimum that a job must lock, cached for a minute. Refuses with 503."""
        if self._minimum is None or self._minimum[1] < self.clock():
            try:
                found = (await self.chain.constants()).minimum_wei
            except ChainError:
                raise chain_is_silent() from None
            self._minimum = (found, self.clock() + MINIMUM_FOR_S)
        return self._minimum[0]


def chain_is_silent() -> Refusal:
    return Refusal(503, "the chain does not answer at the moment")


def _context(request: Request) -> Context:
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


Services = Annotated[Context, Depends(_context)]
