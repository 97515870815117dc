"""The context of every request handler: the parts of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from deepgrid.services.admission import ScriptChecks
from deepgrid.services.admission.webhook_targets import Targets
from deepgrid.services.core import ServiceCore
from deepgrid.services.files.bundles import Bundles
from deepgrid.services.files.claim_states import ClaimStates
from deepgrid.services.following import LogTails
from deepgrid.services.service_metrics import ServiceMetrics
from deepgrid.services.storage.replays import Fence, Nonces
from deepgrid.services.tunnels.switchboard import Switchboard

JobId = Annotated[int, Path(ge=1, lt=2**63)]


@dataclass
class Context(ServiceCore):
    """The parts of one running service."""

    checks: ScriptChecks
    debug_scripts: bool = False
    files: Bundles | None = None  # None if this grid keeps no files
    fence: Fence = field(default_factory=Fence)
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    targets: Targets = field(default_factory=Targets)
    switchboard: Switchboard = field(default_factory=Switchboard)
    reading_jobs: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while new jobs of the chain are read
    all_checks: list[ScriptChecks] = field(init=False)  # that metrics count
    log_tails: LogTails = field(init=False)
    nonces: Nonces = field(init=False)
    claims: ClaimStates = field(init=False)

    def __post_init__(self) -> None:
        self.all_checks = [self.checks]
        self.log_tails = LogTails(self)
        self.nonces = Nonces(self.database)
        self.claims = ClaimStates(self)
        self.metrics.load = self._load

    def _load(self) -> dict[str, float]:
        """Return the present load of the service, for its metrics."""
        checks = self.all_checks
        return {
            "deepgrid_services_checks_running": sum(one.queue.running for one in checks),
            "deepgrid_services_checks_waiting": sum(one.queue.waiting for one in checks),
            "deepgrid_services_followers": self.log_tails.all_followers,
            "deepgrid_services_followed_logs": self.log_tails.followed_logs,
            "deepgrid_services_tunnels": self.switchboard.open_tunnels,
            "deepgrid_services_database_connections": self.database.connections,
        }


def app_state(name: str) -> Callable[[Request], Awaitable[Any]]:
    async def read(request: Request) -> Any:  # FastAPI would call a plain function in a thread
        return getattr(request.app.state, name)

    return read


Services = Annotated[Context, Depends(app_state("context"))]
