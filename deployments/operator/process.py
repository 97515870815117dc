"""The operator's process: follows the chain and runs the operator's flows in process."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.chain.transactions.nonce_lease import NonceLease
from deepgrid.errors import ChainError
from deepgrid.observability.metrics_page import metrics_page
from deepgrid.operator.session import OperatorSession, follow_jobs, operator_session
from deployments.operator.on_demand import OnDemand
from deployments.operator.provider_watch import ProviderWatch
from orchestration import sessions
from orchestration.lost_runs import end_lost_runs
from orchestration.pools import operator_pool
from orchestration.runs.flow_runs import calling_to_runs
from orchestration.worker import InProcessWorker

ROUND_RETRY_S = 0.5  # after a run that Prefect skipped, because a scheduled one was under way
DUE_POLL_S = 0.5

logger = logging.getLogger(__name__)


async def serve_operator(name: str) -> None:
    """Serve the operator block `name` until cancelled. Stands by while another process serves with the same key."""
    settings = (await load_block(Operator, name)).settings()
    pool = operator_pool(name)
    async with (
        sole_operator(settings.key_file), operator_session(settings) as session,
        metrics_page(session.metrics.registry, settings.metrics_port), sessions.serving_operator(name, session),
    ):  # fmt: skip
        worker = InProcessWorker(pool, name=pool)
        async with asyncio.TaskGroup() as group:
            group.create_task(end_lost_runs())
            group.create_task(worker.start(printer=logger.info))
            with calling_to_runs(pool, worker):
                await _follow(name, session, group)


@asynccontextmanager
async def sole_operator(key_file: Path) -> AsyncIterator[None]:
    """Hold the operator's lease of this key, on this machine. The kernel drops it when the process dies."""
    file = key_file.with_name(f"{key_file.name}.operator")
    try:
        lease = await NonceLease(file, 0.0).__aenter__()
    except ChainError:
        logger.warning("standing by, another operator serves with this key: file=%s", file)
        lease = await NonceLease(file, math.inf).__aenter__()
    try:
        yield
    finally:
        await lease.__aexit__(None, None, None)


async def _follow(name: str, session: OperatorSession, group: asyncio.TaskGroup) -> None:
    """Start runs as soon as jobs or providers change, in addition to the schedules.

    A job that is held back causes a run when its cluster is nearly free. A job that fits no cluster causes none until
    something changes.
    """
    meta_schedule = OnDemand(f"meta_schedule/{name}", {"operator": name}, ROUND_RETRY_S)
    approve_labels = OnDemand(f"approve_labels/{name}", {"operator": name})

    def schedule() -> None:
        if session.index.pending():
            meta_schedule.request()

    def approve() -> None:
        if session.settings.approve_label_changes:
            approve_labels.request()

    for service in (
        meta_schedule.serve(), approve_labels.serve(), ProviderWatch(session, schedule, approve).watch(),
        session.notices.serve(), _when_due(session, schedule),
    ):  # fmt: skip
        group.create_task(service)
    if session.store.promised():  # a killed round may have assigned the last pending jobs
        meta_schedule.request()
    async for _ in follow_jobs(session):
        schedule()


async def _when_due(session: OperatorSession, schedule: Callable[[], None]) -> None:
    """Start a run when the first held-back job is due."""
    while True:
        due_at = session.next_round_at
        if due_at is not None and asyncio.get_running_loop().time() >= due_at:
            session.next_round_at = None
            schedule()
        await asyncio.sleep(DUE_POLL_S)
