"""Finds differences between chain and cluster: jobs that Slurm lost, and Slurm jobs whose claim is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from deepgrid.provider.cleanup import find_leftovers, find_outputs_above_quota, remove_leftovers, remove_outputs
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.zombies import cancel_left_over, end_foreign, look_again, look_for_zombies, put_right
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.run_step import run_query, run_step

MOST_NAMED = 20  # in the message of a run


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

    Message and log name each job that was ended, with its Slurm id, its account and the reason.

    Args:
        cluster: Name of the provider block.
        grace_s: Seconds between the two queries, 5 to 600. A job must be absent in both to count as lost. Its record
            may be some seconds late. No other run starts meanwhile.
        keep_days: Days for which folders of finished claims are kept, 2 to 3650. Each night the books read the
            completion records of the last 24 hours in them.
    """
    async with sessions.provider(cluster) as session:
        claims, done = await _end_zombies(session, grace_s)
        said = [f"Of {claims} jobs: {_summary(done)}." if done else f"No zombie among {claims} jobs."]
        if leftovers := await run_query(f"look for leftovers on {cluster}", find_leftovers, session, keep_days):
            removed = await run_query(f"remove leftovers on {cluster}", remove_leftovers, session, leftovers)
            said.append(f"Removed {len(removed)} of {len(leftovers)} folders left over.")
        if above := await run_query(f"look for outputs above a quota on {cluster}", find_outputs_above_quota, session):
            freed = await run_query(f"remove outputs above a quota on {cluster}", remove_outputs, session, above)
            said.append(f"Removed {len(freed)} of {len(above)} outputs above a customer's quota.")
    return Completed(message=" ".join(said))


async def _end_zombies(session: ProviderSession, grace_s: int) -> tuple[int, list[str]]:
    """End what should not be at the cluster or on chain. Returns the number of claims, and what was done, in words."""
    cluster = session.settings.cluster
    found = await run_query(f"look for zombies on {cluster}", look_for_zombies, session)
    cancelled = [
        run_step(f"cancel what is left of job {one.key.job_id} on {cluster}", cancel_left_over, session, one)
        for one in found.left_over
    ]
    done = await asyncio.gather(*map(_logged, cancelled))
    if found.foreign:
        done += [
            _log(words)
            for words in await run_step(f"end foreign jobs on {cluster}", end_foreign, session, found.foreign)
        ]
    if found.suspects:
        await run_step(f"wait {grace_s} s for a trace", asyncio.sleep, grace_s)
        zombies = await run_query(f"look again on {cluster}", look_again, session, found.suspects, grace_s)
        settled = [
            run_step(f"put job {one.seen.key.job_id} right on {cluster}", put_right, session, one) for one in zombies
        ]
        done += await asyncio.gather(*map(_logged, settled))
    return found.claims, done


async def _logged(step: Coroutine[Any, Any, str]) -> str:
    return _log(await step)


def _log(words: str) -> str:
    """Write to the log of the run at once: a later step may fail."""
    get_run_logger().info("collected: %s", words)
    return words


def _summary(done: Sequence[str]) -> str:
    """Return the first of these in one text. The log of the run has all."""
    more = len(done) - MOST_NAMED
    return "; ".join(done[:MOST_NAMED]) + (f"; and {more} more, which the log names" if more > 0 else "")
