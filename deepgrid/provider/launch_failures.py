"""How often a customer's jobs could not be launched at a provider, by the chain: a restart forgets none."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.decide import LAUNCH_FAILURE
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

DAY_S = 86400
LOOKED_AT = 1000  # newest jobs of the customer


async def launch_failures(chain: Chain, job: Job) -> int:
    """Other jobs of the same customer and provider that ended so within the last day, by the chain's clock."""
    ids = [other for other in await chain.jobs_by_customer(job.customer) if other != job.id]
    since = await chain.now() - DAY_S
    others = await chain.jobs(sorted(ids)[-LOOKED_AT:])
    return sum(
        other.provider == job.provider
        and other.status is JobStatus.FAILED
        and other.last_error == LAUNCH_FAILURE
        and other.ended_at >= since
        for other in others
    )
