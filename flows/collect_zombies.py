"""Finds differences between chain and cluster: jobs that Slurm lost, and Slurm jobs whose claim is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from orchestration import sessions
from tasks.collect_zombies import (
    cancel_left_over,
    end_foreign,
    find_leftovers,
    find_outputs_above_quota,
    give_grace,
    look_again,
    look_for_zombies,
    put_right,
    remove_leftovers,
    remove_outputs,
)

MOST_NAMED = 20  # in the message of a run


@flow(name="collect_zombies", flow_run_name="collect zombies of {cluster}", persist_result=False)
async def collect_zombies(
    cluster: str,
    grace_s: Annotated[int, Field(ge=5, le=600)] = 60,
    keep_days: Annotated[int, Field(ge=2, le=3650)] = 35,
) -> State[None]:
    """Refund lost jobs, settle jobs that ended unseen, cancel jobs whose claim is over, and remove leftover folders.

    Of each customer, the oldest finished outputs above the quota of the provider block are removed too.

    Jobs that customers' accounts run without a claim are ended too, unless the provider trusts its customers.
    When the cluster does not answer, the run fails and nothing is collected.

    Message and log name each job that was ended, with its Slurm id, its account and the reason.

    Args:
        cluster: Name of the provider block.
        grace_s: Seconds between the two queries, 5 to 600. A job must be absent in both to count as lost. Its record
            may be some seconds late. No other run starts meanwhile.
        keep_days: Days for which folders of finished claims are kept, 2 to 3650. The books read the completion
            records in them: each night those of the last 24 hours.
    """
    async with sessions.provider(cluster) as session:
        found = await look_for_zombies(session)
        done = await asyncio.gather(*(cancel_left_over(session, one) for one in found.left_over))
        if found.foreign:
            done += await end_foreign(session, found.foreign)
        if found.suspects:
            await give_grace(grace_s)
            seen = await look_again(session, found.suspects, grace_s)
            done += await asyncio.gather(*(put_right(session, one) for one in seen))
        leftovers = await find_leftovers(session, keep_days)
        removed = await remove_leftovers(session, leftovers) if leftovers else []
        above = await find_outputs_above_quota(session)
        freed = await remove_outputs(session, above) if above else []
    said = [f"Of {found.claims} jobs: {_summary(done)}." if done else f"No zombie among {found.claims} jobs."]
    if leftovers:
        said.append(f"Removed {len(removed)} of {len(leftovers)} folders left over.")
    if above:
        said.append(f"Removed {len(freed)} of {len(above)} outputs above a customer's quota.")
    return Completed(message=" ".join(said))


def _summary(done: Sequence[str]) -> str:
    """The first of these in one text; the log of the run has all."""
    more = len(done) - MOST_NAMED
    return "; ".join(done[:MOST_NAMED]) + (f"; and {more} more, which the log names" if more > 0 else "")
