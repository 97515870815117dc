"""Ports of the customer's running jobs on this machine, for the page of `dps web`."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deepgrid.chain.client import Chain
from deepgrid.client.tunnel.job_tunnel import JobTunnel
from deepgrid.client.tunnel.port_forward import AsyncPortForward, listening, until_answered
from deepgrid.errors import GridError, InputError
from deepgrid.services.client import ServicesClient

MOST_FORWARDS = 16
ANSWERS_WITHIN_S = 20.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Forward:
    port: AsyncPortForward
    tunnel: JobTunnel
    until_lost: asyncio.Task[None]


class Forwards:
    """Opens ports at 127.0.0.1, and closes each when its job is over."""

    def __init__(self, chain: Chain, services: ServicesClient) -> None:
        self._chain = chain
        self._services = services
        self._open: dict[tuple[int, int], _Forward] = {}
        self._opening = asyncio.Lock()

    async def url(self, job_id: Any, port: Any) -> str:
        """Return the address of a port of a running job. The same port has the same address as long as it is open.

        Raises InputError (even while no program listens at the port), AccessDenied for another customer's job, and
        ServiceError if its cluster takes no sessions.
        """
        if type(job_id) is not int or type(port) is not int or not 0 < job_id < 2**63 or not 0 < port < 65536:
            raise InputError("A port is a number from 1 to 65535. The job is named by its number.")
        async with self._opening:
            if (job_id, port) not in self._open:
                self._open[job_id, port] = await self._forwarded(job_id, port)
            forward = self._open[job_id, port]
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await until_answered(forward.tunnel, port)
        except TimeoutError:
            raise InputError(
                f"Nothing listens at port {port} of job {job_id} yet.",
                next_step="Open it again once the job's log shows that its server runs.",
            ) from None
        return forward.port.url

    async def close(self) -> None:
        """Close all ports."""
        for one in list(self._open.values()):
            one.until_lost.cancel()
        await asyncio.gather(*(one.until_lost for one in self._open.values()), return_exceptions=True)

    async def _forwarded(self, job_id: int, port: int) -> _Forward:
        if len(self._open) >= MOST_FORWARDS:
            raise InputError(
                f"{MOST_FORWARDS} ports of jobs are open already.", next_step="Start `dps web` again to close them."
            )
        job = await self._chain.job(job_id)
        tunnel = await JobTunnel.open(self._services, job, self._chain.book.authorities)
        try:
            forward = await listening(tunnel, port)
        except GridError:
            await tunnel.close()
            raise
        logger.info("a port of a job is open on this machine: job=%d port=%d address=%s", job_id, port, forward.url)
        return _Forward(forward, tunnel, asyncio.create_task(self._until_lost(job_id, port, forward)))

    async def _until_lost(self, job_id: int, port: int, forward: AsyncPortForward) -> None:
        try:
            with suppress(GridError):
                await forward.wait()
        finally:
            self._open.pop((job_id, port), None)
            await forward.close()
            logger.info("a port of a job is closed: job=%d port=%d", job_id, port)
