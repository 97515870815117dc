"""Finds differences between chain and cluster: jobs that Slurm lost, and Slurm jobs whose claim is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from deepgrid.observability.action_taken import ActionTaken
from deepgrid.provider.cleanup import MIB, find_leftovers, find_outputs_above_quota, remove_leftovers, remove_outputs
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.zombies import cancel_left_over, end_foreign, look_again, look_for_zombies, put_right
from deepgrid.slurm.submit.folders import Leftover, Output
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import ActionReport, reported_actions
from tasks.run_step import run_query, run_step

REMOVED, POSTPONED = "removed", "left to the next run"  # the time for removing is bounded


@flow(name="collect_zombies", flow_run_name="collect zombies of {cluster}", persist_result=False)
async def collect_zombies(
    cluster: BlockName,
    grace_s: Annotated[int, Field(ge=5, le=600)] = 60,
    keep_days: Annotated[int, Field(ge=2, le=3650)] = 35,
) -> State[None]:
    """Refund lost jobs, settle jobs that ended unseen, cancel jobs whose claim is over, and remove leftover folders.

    Of each customer, the oldest finished outputs above the quota of the provider block are removed too.

    It also ends jobs that customers' accounts run without a claim, unless the provider trusts its customers.
    When the cluster does not answer, the run fails and nothing is collected.

    The log and the table `collect-zombies-CLUSTER` name each job that was ended, with its Slurm id, account and reason.

    Args:
        cluster: Name of the provider block.
        grace_s: Seconds between the two queries, 5 to 600. A job must be absent in both to count as lost. Its record
            may be some seconds late. No other run starts meanwhile.
        keep_days: Days for which folders of finished claims are kept, 2 to 3650. Each night the books read the
            completion records of the last 24 hours in them.
    """
    async with sessions.provider(cluster) as session, reported_actions(f"collect-zombies-{cluster}") as report:
        claims = await _end_zombies(session, grace_s, report)
        if leftovers := await run_query(f"look for leftovers on {cluster}", find_leftovers, session, keep_days):
            removed = await run_query(f"remove leftovers on {cluster}", remove_leftovers, session, leftovers)
            report.add(*(_of_leftover(one, keep_days, did=one in removed) for one in leftovers))
        if above := await run_query(f"look for outputs above a quota on {cluster}", find_outputs_above_quota, session):
            freed = await run_query(f"remove outputs above a quota on {cluster}", remove_outputs, session, above)
            report.add(*(_of_output(one, did=one in freed) for one in above))
    return report.end(f"No zombie among {claims} jobs.")


async def _end_zombies(session: ProviderSession, grace_s: int, report: ActionReport) -> int:
    """End what should not be at the cluster or on chain. Returns the number of claims."""
    cluster = session.settings.cluster
    found = await run_query(f"look for zombies on {cluster}", look_for_zombies, session)
    cancelled = [
        run_step(f"cancel what is left of job {one.key.job_id} on {cluster}", cancel_left_over, session, one)
        for one in found.left_over
    ]
    await asyncio.gather(*(_report_step(step, report) for step in cancelled))
    if found.foreign:
        report.add(*await run_step(f"end foreign jobs on {cluster}", end_foreign, session, found.foreign))
    if found.suspects:
        await run_step(f"wait {grace_s} s for a trace", asyncio.sleep, grace_s)
        zombies = await run_query(f"look again on {cluster}", look_again, session, found.suspects, grace_s)
        settled = [
            run_step(f"put job {one.seen.key.job_id} right on {cluster}", put_right, session, one) for one in zombies
        ]
        await asyncio.gather(*(_report_step(step, report) for step in settled))
    return found.claims


async def _report_step(step: Coroutine[Any, Any, ActionTaken], report: ActionReport) -> None:
    report.add(await step)


def _of_leftover(one: Leftover, keep_days: int, *, did: bool) -> ActionTaken:
    why = "storage of a claim that is over" if one.storage else f"its claim is over for {keep_days} days"
    return ActionTaken(REMOVED if did else POSTPONED, "folder", why, job_id=one.key.job_id)


def _of_output(one: Output, *, did: bool) -> ActionTaken:
    why = f"{one.size_bytes // MIB} MiB, above the quota of its customer"
    return ActionTaken(REMOVED if did else POSTPONED, "output", why, job_id=one.key.job_id)
