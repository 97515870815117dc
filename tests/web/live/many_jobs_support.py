"""Many jobs of one customer, most of them over, made by batches."""

from __future__ import annotations

from deepgrid.chain.batches import MOST_AT_ONCE, BatchWriter, Report, Request
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import pass_a_second
from tests.cli.live import CREDIT, Party
from tests.web.live.stage import Stage

SMALL = JobDefinition(gpus=0, mem_per_cpu_mb=1, cpus_per_task=1, ntasks=1, definition_hash="ef" * 32)
DEPOSIT_WEI = 100 * CREDIT


async def request_many(stage: Stage, count: int, running: int) -> list[int]:
    """Request `job-0`, `job-1` ... for the customer: the last `running` ones run, the others are finished."""
    customer, made = stage.customer(), list[int]()
    await stage.operator.writer.mint(customer.address, count * DEPOSIT_WEI)
    await customer.writer.approve(count * DEPOSIT_WEI)
    names = [f"job-{number}" for number in range(count)]
    for first in range(0, count, MOST_AT_ONCE):
        part = names[first : first + MOST_AT_ONCE]
        requests = [Request(SMALL, DEPOSIT_WEI, name) for name in part]
        made += await _batch(customer).request_jobs(requests)
        await run_jobs(stage, made[first:])
    await _batch(stage.provider).report_jobs([Report(one, JobStatus.FINISHED, 3) for one in made[: count - running]])
    await customer.close()
    return made


async def run_jobs(stage: Stage, job_ids: list[int]) -> None:
    """Let the cluster run these pending jobs."""
    await _batch(stage.operator).meta_schedule_jobs([(one, stage.provider.address) for one in job_ids])
    cluster = _batch(stage.provider)
    claimed = await cluster.claim_next_jobs(len(job_ids))
    assert len(claimed) == len(job_ids)
    await cluster.report_jobs([Report(one, JobStatus.RUNNING, 0) for one in job_ids])
    await pass_a_second(stage.chain)


def _batch(party: Party) -> BatchWriter:
    return BatchWriter(party.writer.chain, party.writer.sender)
