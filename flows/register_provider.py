"""Proposes a cluster's hardware, prices and labels to the operator of the grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from deepgrid.observability.action_taken import ActionTaken
from deepgrid.provider.registration import await_approval, look_at_features, propose, read_hardware
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.offer_settings import read_offer
from tasks.run_step import run_step


@flow(name="register_provider", flow_run_name="register {cluster}", persist_result=False)
async def register_provider(cluster: BlockName, wait_minutes: Annotated[int, Field(ge=0, le=1440)] = 0) -> State[None]:
    """Register hardware, prices and labels if something changed, and report whether a proposal waits for approval.

    Prices and labels are read from the provider block. A supervisor reads all other settings at its start only; the
    run names those that differ.

    Args:
        cluster: Name of the provider block.
        wait_minutes: Minutes to wait for the operator's approval, at most a day; 0 to report the standing at once.
    """
    async with sessions.provider(cluster) as session, reported_actions(f"register-provider-{cluster}") as report:
        await run_step(f"check Slurm on {cluster}", session.cluster.health)
        stale = await run_step(f"read prices and labels of {cluster}", read_offer, session)
        hardware = await run_step(f"read hardware on {cluster}", read_hardware, session)
        await run_step(f"look at a node of {cluster}", look_at_features, session)
        outcome = await run_step(f"propose on {cluster}", propose, session, hardware)
        report.add(*(ActionTaken("proposed", "change", change, cluster=cluster) for change in outcome.changes))
        if outcome.standing.waits and wait_minutes:
            name = f"await approval on {cluster}"
            outcome = replace(outcome, standing=await run_step(name, await_approval, session, 60 * wait_minutes))
    restart = f" Restart the supervisor for changed settings: {', '.join(stale)}." if stale else ""
    return report.end("Nothing changed.", f"The provider {outcome.standing.value}.{restart}")
