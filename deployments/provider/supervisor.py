"""The supervisor of one cluster: follows the chain, runs the cluster's flows in process, ends when it is drained."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from prefect.context import AsyncClientContext

from blocks.settings_cache import provider_settings
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import Deposed, GridError
from deepgrid.lifecycle.job import Job
from deepgrid.provider.registration import features_changed, register
from deepgrid.provider.session import ProviderSession, ProviderSettings, follow_jobs, provider_session
from deepgrid.provider.tunnels.tunnel_host import serve_tunnels
from deepgrid.provider.upkeep import resume_logs, watch_services
from deepgrid.provider.zombies import look_for_zombies
from deployments.provider.carriers import CarrierSettings, CarrierWatchdog
from deployments.provider.claiming_report import report_claiming
from deployments.provider.endpoint import health_and_metrics
from deployments.provider.queue_watcher import QueueWatcher
from orchestration import sessions
from orchestration.automations import end_lost_runs
from orchestration.claiming_pause import is_claiming, is_for_good
from orchestration.on_demand import run_when_needed
from orchestration.outages import until_it_answers, warn
from orchestration.pools import provider_pool
from orchestration.runs.flow_runs import calling_to_runs, run_ended, run_to_completion, start_run
from orchestration.worker import InProcessWorker

CLAIM_RETRY_S = 15.0
OPEN_RETRY_S = 2.0
REGISTER_RETRY_S = 30.0
REGISTER_TIMEOUT_S = 60.0
DRAIN_POLL_S = 5.0
ZOMBIES_S = 900.0  # between looks for zombies
FEATURES_S = 3600.0  # between looks at a node for what jobs may need
DELIVERED_WITHIN_S = 600.0  # logs that are not delivered then stay incomplete

logger = logging.getLogger(__name__)


async def serve_provider(cluster: str, carriers: CarrierSettings = CarrierSettings()) -> None:  # noqa: B008
    """Serve the cluster of the provider block `cluster` until cancelled, or until it is drained for good.

    Stands by while another supervisor leads the provider.
    """
    settings = await provider_settings(cluster)
    while True:
        async with AsyncExitStack() as stack:
            session = await _open(stack, settings)
            await stack.enter_async_context(health_and_metrics(session))
            await session.leader.elected()
            if (present := await _present(settings)) != settings:
                logger.info("the settings of %s changed while this supervisor stood by", cluster)
                settings = present
                continue
            try:
                await _lead(session, carriers)
                return
            except* Deposed as deposed:
                logger.warning("standing by, another supervisor leads: %s", deposed.exceptions[0])


async def _present(known: ProviderSettings) -> ProviderSettings:
    """Return the settings as the provider block has them now; the known ones if they cannot be read."""
    try:
        return await provider_settings(known.cluster)
    except GridError as error:
        logger.warning("cannot read the settings of %s again: %s", known.cluster, error)
        return known


async def _open(stack: AsyncExitStack, settings: ProviderSettings) -> ProviderSession:
    """Open the session, and close it with `stack`. Retries while the chain's node is down."""
    closed = ConditionLog(logger, "cannot serve yet")
    while True:
        try:
            session = await stack.enter_async_context(provider_session(settings))
            closed.end()
            return session
        except GridError as error:
            if not error.transient:
                raise
            closed.note(error)
        await asyncio.sleep(OPEN_RETRY_S)


async def _lead(session: ProviderSession, carriers: CarrierSettings) -> None:
    """Claim and carry until drained for good. Raises Deposed, in a group, when another supervisor leads.

    All carriers are cancelled then. That is safe at any point: a carrier may die between any two steps, and the next
    one continues from what the chain and Slurm say.
    """
    cluster = session.settings.cluster
    pool = provider_pool(cluster)
    worker = InProcessWorker(pool, name=f"supervisor-{cluster}", may_start=lambda: session.leader.leads)
    try:
        async with sessions.serving_provider(session), asyncio.TaskGroup() as group:
            group.create_task(_hold(session, worker))
            group.create_task(_work(worker))
            group.create_task(end_lost_runs())
            with calling_to_runs(pool, worker):
                group.create_task(_register(session))
                group.create_task(resume_logs(session))
                group.create_task(watch_services(session))
                group.create_task(QueueWatcher(session).watch())
                group.create_task(serve_tunnels(session))
                group.create_task(_watch_for_zombies(session))
                group.create_task(_watch_features(session))
                group.create_task(report_claiming(session))
                group.create_task(_end_when_drained(session, worker))
                await Supervisor(session, carriers).follow(group)
    except* _Drained:
        logger.info("%s is drained for good: its last job is settled", cluster)


async def _hold(session: ProviderSession, worker: InProcessWorker) -> None:
    try:
        await session.leader.hold()
    except Deposed:
        worker.let_go()
        raise


class _Drained(Exception):
    """The cluster is drained for good, and its last job is settled."""


async def _end_when_drained(session: ProviderSession, worker: InProcessWorker) -> None:
    await until_drained(session, worker.is_idle)
    raise _Drained


async def until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    """Return when the cluster is drained for good, none of its jobs is open, and this process is idle.

    That is one minute after its last transaction, so that no reorganisation undoes it unnoticed. Outages of Prefect or
    the chain only delay it.
    """
    await until_it_answers()
    async with AsyncClientContext.get_or_create():  # else each poll creates a client, which costs more than the poll
        await _until_drained(session, is_idle)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DELIVERED_WITHIN_S):
            await session.logs.until_idle()
            await session.receipts.until_sent()
    if waiting := session.receipts.waiting:
        logger.warning("%d receipts are not sent; they wait for another start of this supervisor", waiting)


async def _until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    cluster, logged = session.settings.cluster, False
    while True:
        try:
            drains = await is_for_good(cluster)
            if drains and not logged:
                logger.info("%s is drained for good: this supervisor ends when its last job is settled", cluster)
            logged = drains
            if drains and await _nothing_left(session) and is_idle():
                return
        except Exception as error:  # Prefect's client raises many types while its server is down
            warn(logger, f"cannot check whether {cluster} is drained, trying again", error, logging.DEBUG)
        await asyncio.sleep(DRAIN_POLL_S)


async def _nothing_left(session: ProviderSession) -> bool:
    """Return whether no claim is open and none can follow. The order of these checks matters."""
    if await is_claiming(session.settings.cluster) or not session.sender.at_rest:
        return False
    return not await session.chain.claimed_jobs(session.address) and session.is_idle


async def _watch_for_zombies(session: ProviderSession) -> None:
    """Start a run of `collect_zombies` when chain and cluster differ. A job that is about to be settled counts, too."""

    async def differ(_: dict[str, Any]) -> bool:
        found = await look_for_zombies(session)
        return bool(found.suspects or found.left_over or found.foreign)

    await run_when_needed(f"collect_zombies/{session.settings.cluster}", differ, ZOMBIES_S)


async def _watch_features(session: ProviderSession) -> None:
    """Start a run of `register_provider` when the nodes have other features than the cluster's labels say."""

    async def differ(_: dict[str, Any]) -> bool:
        return await features_changed(session)

    await run_when_needed(f"register_provider/{session.settings.cluster}", differ, FEATURES_S)


async def _work(worker: InProcessWorker) -> None:
    """Run the pool's flow runs, once Prefect answers."""
    await until_it_answers()
    await worker.start(printer=logger.info)


async def _register(session: ProviderSession) -> None:
    """Register the cluster by a run of `register_provider`, or directly when no run succeeds.

    Claims are carried in the meantime, even if registration never succeeds.
    """
    unregistered = ConditionLog(logger, "cannot register the cluster")
    while not await _run_registers(session.settings.cluster):
        try:
            logger.info("registration: %s", (await register(session)).words)
            return
        except GridError as error:
            unregistered.note(error)
            await asyncio.sleep(REGISTER_RETRY_S)


async def _run_registers(cluster: str) -> bool:
    """Return whether a run of the deployment registered the cluster."""
    try:
        async with asyncio.timeout(REGISTER_TIMEOUT_S):
            return await run_ended(await start_run(f"register_provider/{cluster}", {"cluster": cluster}))
    except Exception as error:  # Prefect's client raises many types
        warn(logger, "register_provider does not run, registering without Prefect", error)
        return False


class Supervisor:
    """Follows this provider's jobs on chain, and starts the runs that they need."""

    def __init__(self, session: ProviderSession, carriers: CarrierSettings) -> None:
        self._session = session
        self._carriers = carriers
        self._hot: dict[int, Job] = {}
        self._claimable = 0  # jobs that wait in this provider's on-chain queue
        self._claim_wanted = asyncio.Event()

    async def follow(self, group: asyncio.TaskGroup) -> None:
        """Follow the chain forever."""
        group.create_task(self._claim())
        first = True
        async for change in follow_jobs(self._session):
            for job in change.jobs:
                if job.status.hot and job.provider == self._session.address:
                    self._hot[job.id] = job
                else:
                    self._hot.pop(job.id, None)
            self._claimable = change.claimable
            if change.claimable:
                self._claim_wanted.set()
            if first:
                first = False
                watchdog = CarrierWatchdog(self._session, self._hot, group, self._carriers)
                group.create_task(watchdog.watch())

    async def _claim(self) -> None:
        cluster = self._session.settings.cluster
        while True:
            try:
                async with asyncio.timeout(CLAIM_RETRY_S):
                    await self._claim_wanted.wait()
            except TimeoutError:
                if not self._claimable:
                    continue
            self._claim_wanted.clear()
            await run_to_completion(f"claim_jobs/{cluster}", {"cluster": cluster})  # a paused pool collects no runs
