"""The operator's process: follows the chain, watches the providers, and runs the operator's flows in process."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.chain.chain_findings import OPERATOR_GAS, judge_gas
from deepgrid.chain.transactions.nonce_lease import NonceLease
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, GridError
from deepgrid.observability.metrics_page import metrics_page
from deepgrid.operator.delegated_top_ups import needs_slices
from deepgrid.operator.expiry import read_overdue
from deepgrid.operator.session import OperatorSession, follow_jobs, operator_session
from orchestration import sessions
from orchestration.automations import end_lost_runs
from orchestration.grid_events import LOW_ON_GAS, Conditions
from orchestration.on_demand import OnDemand, run_when_needed
from orchestration.pools import operator_pool
from orchestration.runs.flow_runs import calling_to_runs
from orchestration.worker import InProcessWorker

ROUND_RETRY_S = 0.5  # after a run that Prefect skipped, because a scheduled one was under way
DUE_POLL_S = 0.5
ROUND_EVERY_S = 600.0  # while jobs are pending, even without a change
LOOK_EVERY_S = 30.0  # for overdue claims, and for jobs that need more time
PROVIDER_POLL_S = 5.0
GAS_EVERY_S = 60.0
READ_AGAIN_S = 300.0  # the counters of providers change without an event

logger = logging.getLogger(__name__)


async def serve_operator(name: str) -> None:
    """Serve the operator block `name` until cancelled. Stands by while another process serves with the same key."""
    settings = (await load_block(Operator, name)).settings()
    pool = operator_pool(name)
    async with (
        sole_operator(settings.key_file),
        operator_session(settings) as session,
        metrics_page(session.metrics.registry, settings.metrics_port),
        sessions.serving_operator(name, session),
    ):
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

    A job that is held back causes a run when its cluster is nearly free. A job that fits no cluster causes one when
    something changes, and every ROUND_EVERY_S.
    """
    meta_schedule = OnDemand(f"meta_schedule/{name}", {"operator": name}, ROUND_RETRY_S)
    approve_labels = OnDemand(f"approve_labels/{name}", {"operator": name})

    def schedule() -> None:
        if session.index.pending():
            meta_schedule.request()

    def approve() -> None:
        if session.settings.approve_label_changes:
            approve_labels.request()

    async def is_overdue(asked: dict[str, Any]) -> bool:
        return bool(await read_overdue(session, asked["silent_hours"], asked["end_running_of_banned"]))

    async def needs_time(asked: dict[str, Any]) -> bool:
        return await needs_slices(session, asked["ahead_minutes"])

    group.create_task(run_when_needed(f"expire_claims/{name}", is_overdue, LOOK_EVERY_S))
    group.create_task(run_when_needed(f"auto_top_up/{name}", needs_time, LOOK_EVERY_S))
    services = [meta_schedule.serve(), approve_labels.serve(), session.notices.serve(), _when_due(session, schedule)]
    for service in (*services, ProviderWatch(session, schedule, approve).watch()):
        group.create_task(service)
    if session.store.promised():  # a killed round may have assigned the last pending jobs
        meta_schedule.request()
    async for _ in follow_jobs(session):
        schedule()


async def _when_due(session: OperatorSession, schedule: Callable[[], None]) -> None:
    """Start a run when the first held-back job is due, and every ROUND_EVERY_S."""
    clock = asyncio.get_running_loop().time
    again_at = clock() + ROUND_EVERY_S
    while True:
        due_at = session.next_round_at
        if (due_at is not None and clock() >= due_at) or clock() >= again_at:
            session.next_round_at, again_at = None, clock() + ROUND_EVERY_S
            schedule()
        await asyncio.sleep(DUE_POLL_S)


class ProviderWatch:
    """Calls `changed` whenever a provider changes, and `proposed` when a provider in force proposes a change.

    One small request per poll finds changes; all providers are read only after one. Each change while a proposal waits
    counts as a proposal, because the event of one that replaces it looks the same.
    """

    def __init__(
        self,
        session: OperatorSession,
        changed: Callable[[], None],
        proposed: Callable[[], None],
        poll_s: float = PROVIDER_POLL_S,
    ) -> None:
        self._session = session
        self._poll_s = poll_s
        self._changed = changed
        self._proposed = proposed
        self._waiting: set[str] = set()
        self._block = -1  # up to which changes are known
        self._block_hash = ""
        self._read_at = 0.0
        self._gas_at = -GAS_EVERY_S
        self._conditions = Conditions("operator", session.sender.address)

    async def watch(self) -> None:
        """Poll forever. An outage of the node only delays."""
        silence = ConditionLog(logger, "cannot read the providers")
        try:
            while True:
                try:
                    await self._look()
                    silence.end()
                except GridError as error:
                    silence.note(error.message)
                await asyncio.sleep(self._poll_s)
        finally:
            self._session.watched = None

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._gas_at >= GAS_EVERY_S:
            session, address = self._session, self._session.sender.address
            money, price = await session.chain.gas_money(address), await session.chain.gas_price()
            session.metrics.set_gas_balance(money)
            self._conditions.tell(LOW_ON_GAS, judge_gas(OPERATOR_GAS, address, money, price).complaint)
            self._gas_at = now
        head = await self._session.chain.head()
        if head.hash == self._block_hash:
            return
        is_old = self._session.watched is None or head.number <= self._block or now - self._read_at > READ_AGAIN_S
        changed = not is_old and await self._session.chain.providers_changed(self._block + 1, head.number)
        if is_old or changed:
            await self._read(changed=changed)
            self._read_at = now
        self._block, self._block_hash = head.number, head.hash

    async def _read(self, *, changed: bool) -> None:
        before, found = self._session.watched or [], await self._session.chain.providers_and_records()
        self._session.watched = found
        providers = [one for one, _ in found]
        self._session.metrics.saw_providers(providers)
        if providers != [one for one, _ in before]:
            self._changed()
        waiting = {one.address for one in providers if one.in_force and one.waiting_for_approval}
        if waiting - self._waiting or (changed and waiting):
            self._proposed()
        self._waiting = waiting
