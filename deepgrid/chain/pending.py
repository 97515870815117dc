"""Reads pending jobs by pages, without an index of events."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.chain.node.values import job_of
from deepgrid.chain.transactions.contract_errors import too_large
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Job


async def pending_jobs(chain: Chain, first: int, how_many: int) -> list[Job]:
    """The pending ones of the `how_many` jobs from number `first` on, in the order of their ids.

    Ids count from 1 to `Chain.job_count`. Jobs that are not pending cost little, so `how_many` can be thousands.

    Raises:
        ChainError: The node does not answer.
    """
    try:
        page = await chain._read("MetaScheduler", "pendingJobs", first, how_many)
    except ContractError as error:
        if not too_large(error) or how_many == 1:
            raise
    else:
        return list(map(job_of, *page))
    half = how_many // 2  # nearly all are pending: read fewer at once
    return await pending_jobs(chain, first, half) + await pending_jobs(chain, first + half, how_many - half)
