"""Answers the tunnels that customers open into the jobs of this cluster.

The services are asked by long polls, so no port is open here. What they say is checked again: the customer's signature
names the job, its claim and this provider. The log says who got into a job, when, and how many bytes passed. Contents
are never logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.tunnels.agent_link import AgentLink
from deepgrid.provider.tunnels.served_tunnel import ServedTunnel, TunnelBounds
from deepgrid.services.admission.limits import Buckets, Rate, Shares
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.messages import MAX_WAIT_S
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import WINDOW_S
from deepgrid.services.signing.session_keys import Session
from deepgrid.services.signing.signatures import BadRequestSignature
from deepgrid.services.tunnels.secure_channel import (
    Invitation,
    TunnelAnswer,
    TunnelOpening,
    answer_opening,
    check_opening,
)
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.overlap_step import start_agent

ASK_AGAIN_S = 3.0  # after a failure, and while no job runs
AGENT_STAYS_S = 60.0  # without a session
FOR_EVER_S = 10.0**9

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TunnelSettings:
    """What one cluster allows its customers. Times are seconds."""

    per_job: int = 16
    per_customer: int = 64
    total: int = 512
    openings: Rate = field(default_factory=lambda: Rate(2, 64))  # per customer
    bounds: TunnelBounds = field(default_factory=TunnelBounds)


class TunnelHost:
    """The sessions of one cluster. `serve` runs until it is cancelled."""

    def __init__(self, session: ProviderSession, settings: TunnelSettings = TunnelSettings()) -> None:
        self._session = session
        self._settings = settings
        self._client = TunnelsClient(session.services, session.chain.book.authorities)
        self._login = Login(session.settings.login)  # its own connections: sessions delay no claim
        self.tunnels: set[ServedTunnel] = set()  # that are open
        self._links: dict[JobKey, asyncio.Task[AgentLink]] = {}
        self._users: dict[JobKey, int] = {}
        self._by_job = Shares(settings.per_job, settings.total)
        self._by_customer = Shares(settings.per_customer, settings.total)
        self._openings = Buckets(settings.openings)
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._silence = ConditionLog(logger, "cannot ask for sessions")

    async def serve(self) -> None:
        """Ask for invitations until cancelled, and serve each in a task of its own."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    if not self._session.runs_jobs:
                        await asyncio.sleep(ASK_AGAIN_S)
                        continue
                    try:
                        found = await self._client.invitations(self._session.address, MAX_WAIT_S)
                        self._silence.end()
                    except GridError as error:
                        self._silence.note(error.message)
                        await asyncio.sleep(ASK_AGAIN_S)
                        continue
                    for one in found:
                        group.create_task(self._answer(one))
        finally:
            for link in self._links.values():
                link.cancel()
                if link.done() and not link.cancelled() and link.exception() is None:
                    link.result().close()
            await self._login.close()
            await self._client.close()

    async def _answer(self, invitation: Invitation) -> None:
        """Serve one tunnel. What goes wrong ends this tunnel only."""
        try:
            socket = await self._client.join_with_others(self._session.address, invitation.token)
        except GridError as error:
            logger.warning("job %d: a session is not joined: %s", invitation.job_id, error.message)
            return
        try:
            with ExitStack() as held:
                await self._serve(invitation, socket, held)
        except (GridError, Refusal, BadRequestSignature) as error:
            why = error.message if isinstance(error, GridError) else str(error)
            logger.warning("job %d: session refused: %s", invitation.job_id, why)
            await _refuse(socket, why)
        except ConnectionError:
            logger.info("job %d: the customer left before the session began", invitation.job_id)
        except Exception as error:  # of one session, which must not end the supervisor
            logger.error("job %d: a session failed: unexpected error (%s)", invitation.job_id, type(error).__name__)
        finally:
            await socket.close()

    async def _serve(self, invitation: Invitation, socket: TunnelSocket, held: ExitStack) -> None:
        job, key, slurm_id = await self._find(invitation.job_id)
        by = self._check(invitation.opening, job)
        self._admit(job, held)
        self._users[key] = self._users.get(key, 0) + 1
        held.callback(self._leave, key)
        link = await self._link(job, key, slurm_id)
        domain, account = self._session.services.domain, self._session.sender.wallet.account
        answer, channel = answer_opening(invitation.opening, account, domain)
        await socket.send(answer.model_dump_json().encode())
        tunnel, began = ServedTunnel(link, socket, channel, self._settings.bounds), time.monotonic()
        who = f"customer={job.customer} by={'session key' if by else 'wallet'}"
        logger.info("job %d: session opened: %s", job.id, who)
        until = began + (by.not_after - time.time() if by else FOR_EVER_S)
        why = "it was cut off"
        self.tunnels.add(tunnel)
        held.callback(self.tunnels.discard, tunnel)
        try:
            why = await tunnel.serve(until)
        finally:
            traffic = tunnel.traffic
            kinds = ",".join(f"{kind}:{count}" for kind, count in sorted(traffic.opened.items())) or "none"
            carried = f"to_job={traffic.to_job} from_job={traffic.from_job} streams={kinds}"
            ran_s = time.monotonic() - began
            logger.info("job %d: session ended: %s seconds=%.0f %s: %s", job.id, who, ran_s, carried, why)

    async def _find(self, job_id: int) -> tuple[Job, JobKey, int]:
        """Return the running job with its Slurm id. Refuses a job that does not run here now."""
        session = self._session
        job = await session.chain.job(job_id)
        key = session.key_of(job)
        seen = session.monitor.observe(key)
        if job.provider != session.address or job.status is not JobStatus.RUNNING or not session.carries(key):
            raise Refusal(409, "the job does not run here")
        if seen.phase is not Phase.RUNNING or seen.slurm_id is None:
            raise Refusal(409, "the job does not run in Slurm now, or Slurm does not answer")
        return job, key, seen.slurm_id

    def _check(self, opening: TunnelOpening, job: Job) -> Session | None:
        """Refuse an opening that is not its customer's, or that was used before."""
        found = check_opening(opening, job, self._session.services.domain, int(time.time()))
        now = time.monotonic()
        while self._seen and next(iter(self._seen.values())) < now:
            self._seen.popitem(last=False)
        if opening.hash() in self._seen:
            raise Refusal(401, "this opening was used before")
        self._seen[opening.hash()] = now + 2 * WINDOW_S
        return found

    def _admit(self, job: Job, held: ExitStack) -> None:
        self._openings.require(job.customer, what="too many sessions were opened")
        for shares, key, of in ((self._by_job, str(job.id), "the job"), (self._by_customer, job.customer, "yours")):
            if not held.enter_context(shares.hold(key)):
                raise Refusal(429, f"too many sessions are open here; end one of {of}")

    async def _link(self, job: Job, key: JobKey, slurm_id: int) -> AgentLink:
        """Return the line to the agent of this job. The first session starts it."""
        task = self._links.get(key)
        if task is None or (task.done() and (task.exception() is not None or task.result().over.done())):
            task = self._links[key] = asyncio.create_task(self._start(job, key, slurm_id))
        return await asyncio.shield(task)

    async def _start(self, job: Job, key: JobKey, slurm_id: int) -> AgentLink:
        link = AgentLink(await start_agent(self._login, key, slurm_id, job))
        try:
            await link.ready()
        except BaseException:
            link.close()
            raise
        return link

    def _leave(self, key: JobKey) -> None:
        """Count a session less. The agent ends some time after the last one."""
        self._users[key] -= 1
        if not self._users[key]:
            asyncio.get_running_loop().call_later(AGENT_STAYS_S, self._end_unused, key)

    def _end_unused(self, key: JobKey) -> None:
        if self._users.get(key) or key not in self._links:
            return
        self._users.pop(key, None)
        task = self._links.pop(key)
        task.cancel()
        if task.done() and not task.cancelled() and task.exception() is None:
            task.result().close()


async def _refuse(socket: TunnelSocket, why: str) -> None:
    with suppress(ConnectionError):
        await socket.send(TunnelAnswer(refused=why[:500]).model_dump_json().encode())


async def serve_tunnels(session: ProviderSession, settings: TunnelSettings = TunnelSettings()) -> None:
    """Serve the sessions of this cluster's customers until cancelled, unless its provider allows none."""
    if session.settings.sessions:
        await TunnelHost(session, settings).serve()
