"""Prefect's own way to end a run whose process is gone: it sends heartbeats, and an automation waits for them.

The worker of slow flows kills its runs when it ends. They would stay Running, and their deployments would wait.
Runs that an in-process worker carries send no heartbeats: the next process of their pool takes them over.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from orchestration.automations import deploy
from orchestration.outages import asking, until_it_answers, warn

LOST_AFTER = timedelta(minutes=2)  # four heartbeats
HEARTBEAT = "prefect.flow-run.heartbeat"
ENDS = frozenset(f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed"))
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

logger = logging.getLogger(__name__)


async def end_lost_runs() -> None:
    """Let Prefect end them from now on, once it answers. Logs why it cannot: nothing else depends on it."""
    try:
        await until_it_answers()
        async with asking() as client:
            await deploy(client, LOST_RUNS)
    except Exception as error:  # Prefect's client raises many types
        warn(logger, "Prefect does not end runs that have lost their process", error)
