"""Reads of a customer's jobs from the chain, for tests of sweeps."""

from __future__ import annotations

from collections import Counter

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.states import JobStatus


async def most_hot(chain: Chain, customer: str, first_block: int) -> int:
    """Return the largest number of the customer's jobs that were hot at the end of a block since `first_block`."""
    own = set(await chain.jobs_by_customer(customer))
    hot: set[int] = set()
    by_block: dict[int, int] = {}
    for event in await chain.events(first_block, None, ("NewJobRequestEvent", "JobTransitionEvent")):
        job_id = event.job_id
        if job_id not in own:
            continue
        if event.name == "NewJobRequestEvent" or JobStatus(event.args["to"]).hot:
            hot.add(job_id)
        else:
            hot.discard(job_id)
        by_block[event.block] = len(hot)
    return max(by_block.values(), default=0)


async def request_transactions(chain: Chain, customer: str, first_block: int) -> int:
    """Return the number of transactions since `first_block` in which the customer requested jobs."""
    events = await chain.events(first_block, None, ("NewJobRequestEvent",))
    own = set(await chain.jobs_by_customer(customer))
    return len(Counter(event.tx_hash for event in events if event.job_id in own))
