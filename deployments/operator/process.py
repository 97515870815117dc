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
from deepgrid.operator.session import OperatorSession, follow_jobs, operator_session
from orchestration import sessions
from orchestration.automations import end_lost_runs
from orchestration.grid_events import LOW_ON_GAS, Conditions
from orchestration.pools import operator_pool
from orchestration.runs.flow_runs import calling_to_runs, run_to_completion
from orchestration.worker import InProcessWorker

ROUND_RETRY_S = 0.5  # after a run that Prefect skipped, because a scheduled one was under way
DUE_POLL_S = 0.5
RETRY_S = 5.0  # the first pause after a failed run; each further pause is twice as long
LONGEST_PAUSE_S = 60.0
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

    services = [meta_schedule.serve(), approve_labels.serve(), session.notices.serve(), _when_due(session, schedule)]
    for service in (*services, ProviderWatch(session, schedule, approve).watch()):
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


class OnDemand:
    """Starts a run of the deployment (`flow/name`) whenever one is requested, one at a time.

    Requests during a run lead to one more run. A run that does not complete, or that Prefect skips because of a
    concurrency limit, is followed by a new one with exponential back-off.
    """

    def __init__(self, deployment: str, parameters: dict[str, Any], retry_s: float = RETRY_S) -> None:
        self._retry_s = retry_s
        self._deployment = deployment
        self._parameters = parameters
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Request a run."""
        self._requested.set()

    async def serve(self) -> None:
        """Start the requested runs, forever."""
        failures = 0
        while True:
            await self._requested.wait()
            self._requested.clear()
            if await run_to_completion(self._deployment, self._parameters):
                failures = 0
                continue
            await asyncio.sleep(min(LONGEST_PAUSE_S, self._retry_s * 2 ** min(failures, 10)))
            failures += 1
            self._requested.set()


class ProviderWatch:
    """Calls `changed` whenever a provider changes, and `proposed` when a provider in force proposes a change.

    One small request per poll finds changes; all providers are read only after one. It does not notice a proposal that
    replaces a waiting one. The schedule of the flow `approve_labels` handles that.
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
        if is_old or await self._session.chain.providers_changed(self._block + 1, head.number):
            await self._read()
            self._read_at = now
        self._block, self._block_hash = head.number, head.hash

    async def _read(self) -> None:
        before, found = self._session.watched or [], await self._session.chain.providers_and_records()
        self._session.watched = found
        providers = [one for one, _ in found]
        self._session.metrics.saw_providers(providers)
        if providers != [one for one, _ in before]:
            self._changed()
        waiting = {one.address for one in providers if one.in_force and one.waiting_for_approval}
        if waiting - self._waiting:
            self._proposed()
        self._waiting = waiting
