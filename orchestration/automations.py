"""Prefect's automations, as code: they notify a person, and end runs whose process is gone.

Deploying them again changes what differs. The worker of slow flows sends heartbeats, and kills its runs when it ends.
They would stay Running, and their deployments would wait. Runs that an in-process worker carries send no heartbeats:
the next process of their pool takes them over.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import StateType, WorkPoolStatus
from prefect.events.actions import ChangeFlowRunState, SendNotification
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from deepgrid.errors import ConfigurationError
from orchestration.grid_events import BOOKS_DIFFER, DEGRADED, LOW_ON_GAS, OVER
from orchestration.outages import asking, until_it_answers, warn
from orchestration.pools import OURS, PROCESSES

SILENT_AFTER = timedelta(minutes=5)
PREFECT_NOTICES_AFTER = timedelta(seconds=90)  # three missed heartbeats; then its event starts the wait
SHORTEST_WAIT = timedelta(seconds=10)
PAGE = "See docs/how-to/notifications.md."
LOST_AFTER = timedelta(minutes=2)  # four heartbeats
HEARTBEAT = "prefect.flow-run.heartbeat"
DIFFERENCE = f"prefect.flow-run.{BOOKS_DIFFER}"
ENDS = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")} | {DIFFERENCE}
LOST_RUNS = AutomationCore(
    name="deepgrid: a run has lost its process",
    description="Made by the processes of deepgrid, which also change it.",
    trigger=EventTrigger(
        match={"prefect.resource.id": "prefect.flow-run.*"},
        for_each={"prefect.resource.id"},
        after={HEARTBEAT},
        expect={HEARTBEAT, *ENDS},
        posture=Posture.Proactive,
        within=LOST_AFTER,
    ),
    actions=[ChangeFlowRunState(state=StateType.CRASHED, message="Nothing carries it any more.")],
)
FAILED = {"prefect.flow-run.Failed", "prefect.flow-run.Crashed"}
READY, NOT_READY = {"prefect.work-pool.ready"}, {"prefect.work-pool.not-ready"}
OF_RUN = "{{ flow_run.name }}: {{ flow_run.state.message }}"
OF_POOL = (
    "No process of the work pool {{ work_pool.name }} was heard of. Start it: dps provider serve NAME carries"
    f" provider-NAME, dps operator serve NAME carries operator-NAME, Prefect's worker carries {PROCESSES}."
    " On a machine with units run systemctl start deepgrid.target."
)
OF_CONDITION = "{{ event.resource.name }}: {{ event.payload['reason'] }}"

logger = logging.getLogger(__name__)


def automations(block: UUID, silent_after: timedelta = SILENT_AFTER) -> list[AutomationCore]:
    """Return all automations. They notify by the notification block with this id."""
    flow_run, pool = {"prefect.resource.id": "prefect.flow-run.*"}, {"prefect.resource.id": "prefect.work-pool.*"}
    ours = {"prefect.resource.name": list(OURS)}
    books = {"prefect.resource.role": "flow", "prefect.resource.name": "reconcile_billing"}
    of_books = {"match": flow_run, "match_related": books}
    within = max(silent_after - PREFECT_NOTICES_AFTER, SHORTEST_WAIT)
    silent = {"match": pool | ours, "after": NOT_READY, "expect": READY, "posture": Posture.Proactive, "within": within}
    over, was = {LOW_ON_GAS + OVER, DEGRADED + OVER}, f"Over now. {OF_CONDITION}"
    return [
        _notifies(block, "deepgrid: the books do not agree", OF_RUN, expect={DIFFERENCE}, **of_books),
        _notifies(block, "deepgrid: the books were not compared", OF_RUN, expect=FAILED, **of_books),
        _notifies(block, "deepgrid: a process is silent", OF_POOL, **silent),
        _notifies(block, "deepgrid: a wallet is low on gas", OF_CONDITION, expect={LOW_ON_GAS}),
        _notifies(block, "deepgrid: a cluster is degraded", OF_CONDITION, expect={DEGRADED}),
        _notifies(block, "deepgrid: a condition is over", was, expect=over),
    ]


async def deploy_automations(block: str, silent_after: timedelta = SILENT_AFTER) -> dict[str, str]:
    """Make or change the automations, for the notification block `TYPE/NAME`.

    Returns what happened to each, by name: new, changed or unchanged. Raises ConfigurationError without such a block.
    """
    async with get_client() as client:
        wanted = automations(await _block_id(client, block), silent_after)
        return {one.name: await _deploy(client, one) for one in wanted}


async def compare_automations(block: str) -> dict[str, str]:
    """Return what `deploy_automations` would do to each, by name. Raises ConfigurationError without such a block."""
    async with get_client() as client:
        wanted = automations(await _block_id(client, block))
        return {one.name: _difference(await client.read_automations_by_name(one.name), one) for one in wanted}


async def remove_automations() -> list[str]:
    """Delete the automations. Returns the names of those that were there."""
    names = []
    async with get_client() as client:
        for one in automations(UUID(int=0)):
            for found in await client.read_automations_by_name(one.name):
                await client.delete_automation(found.id)
                names.append(one.name)
    return names


async def silent_pools() -> list[str]:
    """Return the names of the grid's work pools whose process is silent now.

    The automations notify of later silence only.
    """
    async with get_client() as client:
        pools = await client.read_work_pools()
    ours = [pool for pool in pools if any(fnmatchcase(pool.name, pattern) for pattern in OURS)]
    return sorted(pool.name for pool in ours if pool.status is WorkPoolStatus.NOT_READY)


async def end_lost_runs() -> None:
    """Let Prefect end them from now on, once it answers. Logs why it cannot: nothing else depends on it."""
    try:
        await until_it_answers()
        async with asking() as client:
            await _deploy(client, LOST_RUNS)
    except Exception as error:  # Prefect's client raises many types
        warn(logger, "Prefect does not end runs that have lost their process", error)


def _notifies(block: UUID, name: str, body: str, **trigger: Any) -> AutomationCore:
    trigger = {"posture": Posture.Reactive} | trigger  # Prefect's client sends no defaults when it changes one
    return AutomationCore(
        name=name,
        description="Made by `dps provider notify` or `dps operator notify`, which also change it.",
        trigger=EventTrigger(for_each={"prefect.resource.id"}, **trigger),
        actions=[SendNotification(block_document_id=block, subject=name, body=f"{body}\n{PAGE}")],
    )


async def _deploy(client: PrefectClient, wanted: AutomationCore) -> str:
    """Make or change an automation. Returns new, changed or unchanged. A disabled one stays disabled."""
    found = await client.read_automations_by_name(wanted.name)
    for other in found[1:]:
        await client.delete_automation(other.id)
    what = _difference(found, wanted)
    if what == "new":
        await client.create_automation(wanted)
    elif what == "changed":
        await client.update_automation(found[0].id, wanted.model_copy(update={"enabled": found[0].enabled}))
    return what


def _difference(found: Sequence[Automation], wanted: AutomationCore) -> str:
    if not found:
        return "new"
    return "unchanged" if _comparable_values(found[0]) == _comparable_values(wanted) else "changed"


def _comparable_values(one: AutomationCore) -> dict[str, Any]:
    """Return the values that a deployment sets. A disabled automation stays disabled. Sets have no order here."""
    whole = one.model_dump(include={"description", "trigger", "actions"})
    whole["trigger"].pop("id", None)
    return whole


async def _block_id(client: PrefectClient, block: str) -> UUID:
    kind, _, name = block.partition("/")
    if kind and name:
        with suppress(ObjectNotFound):
            return (await client.read_block_document_by_name(name, kind)).id
    raise ConfigurationError(
        f"Prefect has no block {block}.",
        next_step="Make a notification block in Prefect's UI, such as slack-webhook/NAME.",
    )
