"""The side effects of `collect_zombies`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider import cleanup as tidying
from deepgrid.provider import zombies
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.zombies import Findings, Suspect
from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.submit.leftovers import Leftover
from runtime.retry_policy import side_effect

LOOKS_AGAIN = 2  # a cluster that does not answer is asked by the next run


@side_effect("look for zombies on {session.settings.cluster}", LOOKS_AGAIN)
async def look_for_zombies(session: ProviderSession) -> Findings:
    """Compare the claims that the chain knows with the cluster's queue, spool and accounting."""
    return await zombies.look_for_zombies(session)


@side_effect("wait {grace_s} s for a trace")
async def give_grace(grace_s: int) -> None:
    """Let what is only late be seen."""
    await asyncio.sleep(grace_s)


@side_effect("look again on {session.settings.cluster}", LOOKS_AGAIN)
async def look_again(session: ProviderSession, suspects: Sequence[Suspect], grace_s: int) -> list[Observation]:
    """Look at all suspects once more; those for which something is to be done."""
    return await zombies.look_again(session, suspects, grace_s)


@side_effect("put job {seen.key.job_id} right on {session.settings.cluster}")
async def put_right(session: ProviderSession, seen: Observation) -> str:
    """Settle a lost or ended job; returns its state, in words."""
    return await zombies.put_right(session, seen)


@side_effect("cancel what is left of job {key.job_id} on {session.settings.cluster}")
async def cancel_left_over(session: ProviderSession, key: JobKey) -> None:
    """Cancel a Slurm job whose claim is over."""
    await zombies.cancel_left_over(session, key)


@side_effect("end foreign jobs on {session.settings.cluster}")
async def end_foreign(session: ProviderSession, foreign: Sequence[Row]) -> list[int]:
    """End jobs of customers' accounts that belong to no claim; returns the ids that Slurm took."""
    return await zombies.end_foreign(session, foreign)


@side_effect("look for leftovers on {session.settings.cluster}", LOOKS_AGAIN)
async def find_leftovers(session: ProviderSession, keep_days: int) -> list[Leftover]:
    """Folders of claims that have been over for long, and storage of jobs that were killed."""
    return await tidying.find_leftovers(session, keep_days)


@side_effect("remove leftovers on {session.settings.cluster}", LOOKS_AGAIN)
async def remove_leftovers(session: ProviderSession, leftovers: Sequence[Leftover]) -> int:
    """Remove them, as many as there is time for; returns how many."""
    return len(await tidying.remove_leftovers(session, leftovers))
