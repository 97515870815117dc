"""The operator's process: follows the chain and runs the operator's flows in process."""

from __future__ import annotations

import asyncio
import logging

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.operator.session import OperatorSession, follow_jobs, operator_session
from deployments.operator.market import Market
from deployments.operator.on_demand import OnDemand
from runtime import sessions
from runtime.flow_runs import calling_to_runs
from runtime.worker import InProcessWorker

logger = logging.getLogger(__name__)


async def serve_operator(name: str) -> None:
    """Serve the operator block `name` until cancelled."""
    settings = (await load_block(Operator, name)).settings()
    pool = f"operator-{name}"
    async with operator_session(settings) as session, sessions.serving_operator(name, session):
        worker = InProcessWorker(pool, name=f"operator-{name}")
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.start(printer=logger.info))
            with calling_to_runs(pool, worker):
                await _follow(name, session, group)


async def _follow(name: str, session: OperatorSession, group: asyncio.TaskGroup) -> None:
    """Start runs as soon as jobs or providers change, in addition to the schedules.

    A job that fits no cluster causes no run until something changes.
    """
    meta_schedule = OnDemand(f"meta_schedule/{name}", {"operator": name})
    approve_labels = OnDemand(f"approve_labels/{name}", {"operator": name})

    def schedule() -> None:
        if session.index.pending():
            meta_schedule.request()

    def approve() -> None:
        if session.settings.approve_label_changes:
            approve_labels.request()

    for service in (meta_schedule.serve(), approve_labels.serve(), Market(session, schedule, approve).watch()):
        group.create_task(service)
    async for _ in follow_jobs(session):
        schedule()
