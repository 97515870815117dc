"""The side effects of `collect_zombies`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prefect import get_run_logger

from deepgrid.provider import cleanup, zombies
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.zombies import LeftOver, Zombie
from deepgrid.slurm.observe.commands import Row
from orchestration.retry_policy import side_effect

QUERY_RETRIES = 2  # a cluster that does not answer is queried again by the next run

look_for_zombies = side_effect("look for zombies on {session.settings.cluster}", QUERY_RETRIES)(
    zombies.look_for_zombies
)
look_again = side_effect("look again on {session.settings.cluster}", QUERY_RETRIES)(zombies.look_again)
find_leftovers = side_effect("look for leftovers on {session.settings.cluster}", QUERY_RETRIES)(cleanup.find_leftovers)
remove_leftovers = side_effect("remove leftovers on {session.settings.cluster}", QUERY_RETRIES)(
    cleanup.remove_leftovers
)
find_outputs_above_quota = side_effect("look for outputs above a quota on {session.settings.cluster}", QUERY_RETRIES)(
    cleanup.find_outputs_above_quota
)
remove_outputs = side_effect("remove outputs above a quota on {session.settings.cluster}", QUERY_RETRIES)(
    cleanup.remove_outputs
)


@side_effect("put job {zombie.seen.key.job_id} right on {session.settings.cluster}")
async def put_right(session: ProviderSession, zombie: Zombie) -> str:
    """Settle or refuse one claim, as it ended or as lost. Returns what was done, in words."""
    return _log(await zombies.put_right(session, zombie))


@side_effect("cancel what is left of job {left.key.job_id} on {session.settings.cluster}")
async def cancel_left_over(session: ProviderSession, left: LeftOver) -> str:
    """Cancel a Slurm job whose claim is over. Returns what was done, in words."""
    return _log(await zombies.cancel_left_over(session, left))


@side_effect("end foreign jobs on {session.settings.cluster}")
async def end_foreign(session: ProviderSession, foreign: Sequence[Row]) -> list[str]:
    """End jobs of customers' accounts without a claim. Returns what was done with each, in words."""
    return [_log(words) for words in await zombies.end_foreign(session, foreign)]


def _log(words: str) -> str:
    """Write to the log of the run at once: a later step may fail."""
    get_run_logger().info("collected: %s", words)
    return words


@side_effect("wait {grace_s} s for a trace")
async def give_grace(grace_s: int) -> None:
    """Wait, so that jobs whose records are only late become visible."""
    await asyncio.sleep(grace_s)
