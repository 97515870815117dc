"""The last lines of a job's log: what the job used of what it asked for."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from deepgrid.billing.resource_use import LEAST_S, Measured, resource_use
from deepgrid.billing.use_samples import UseHistory
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)


async def say_use(session: ProviderSession, seen: Observation) -> None:
    """Put what the job used into its log, if Slurm knows it soon. The job is settled already, so nothing waits for it.

    Where accounting is missing or late, the samples of the running job say it. Nothing is said of a short run.
    """
    if not session.logs.holds(seen.key) or seen.slurm.run_s < LEAST_S:
        return
    asked, measured = seen.job.definition, Measured()
    cpus = asked.ntasks * asked.cpus_per_task
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(session.intervals.use_known_s):
                measured = await _wait_for_use(session, seen.slurm)
    except Exception:  # a bug must not end the carrier of a settled job
        logger.exception("job %d: its log lacks its resource use: unexpected error", seen.key.job_id)
        return
    use, until = resource_use(cpus, cpus * asked.mem_per_cpu_mb, seen.slurm.run_s, measured, asked.gpus), ""
    last = session.sampler.last(seen.key)
    if not use.words and last is not None:
        use = UseHistory(cpus, cpus * asked.mem_per_cpu_mb, asked.gpus, (last,)).so_far
        until = f" (in its first {last.run_s} s)"
    if use.words:
        for line in filter(None, (use.words + until, use.hint)):
            session.logs.say(seen.key, line)


async def _wait_for_use(session: ProviderSession, ran: SlurmJob) -> Measured:
    """Return what the run used, once accounting has its end."""
    while (found := await session.uses.of((ran.slurm_id or 0, ran.started_at))) is None:  # noqa: ASYNC110 - accounting is late
        await asyncio.sleep(1.0)
    return found
