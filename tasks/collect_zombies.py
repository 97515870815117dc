"""The side effects of `collect_zombies`."""

from __future__ import annotations

import asyncio

from deepgrid.provider import cleanup, zombies
from runtime.retry_policy import side_effect

QUERY_RETRIES = 2  # a cluster that does not answer is queried again by the next run

look_for_zombies = side_effect("look for zombies on {session.settings.cluster}", QUERY_RETRIES)(
    zombies.look_for_zombies
)
look_again = side_effect("look again on {session.settings.cluster}", QUERY_RETRIES)(zombies.look_again)
put_right = side_effect("put job {seen.key.job_id} right on {session.settings.cluster}")(zombies.put_right)
cancel_left_over = side_effect("cancel what is left of job {key.job_id} on {session.settings.cluster}")(
    zombies.cancel_left_over
)
end_foreign = side_effect("end foreign jobs on {session.settings.cluster}")(zombies.end_foreign)
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


@side_effect("wait {grace_s} s for a trace")
async def give_grace(grace_s: int) -> None:
    """Wait, so that jobs whose records are only late become visible."""
    await asyncio.sleep(grace_s)
