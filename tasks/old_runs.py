"""Deletes old runs from Prefect's database, except runs of jobs that are not over.

Only runs in a final state are found, and the server checks the state again when it deletes. Prefect's own vacuum
deletes events, and each day the artifacts of deleted runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun
from prefect.client.schemas.sorting import FlowRunSort

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from orchestration import prefect_internals
from orchestration.runs.filters import flows_named, runs_with
from tasks.action_report import IDLE
from tasks.job_runs import carries_claim, claim_of, is_key_of

ENDS = sorted(TERMINAL_STATES)
PAGE = 200
BATCH_SIZE = 50  # the most that the server deletes in one request
UNKNOWN = 0  # job ids count from 1
# Flows whose runs say nothing that a job's own run does not say.
ROUNDS = ["claim_jobs", "meta_schedule"]
# Flows that look for work. Their runs are kept longer if they did something.
LOOKERS = ["approve_labels", "auto_top_up", "cancel_jobs", "collect_zombies", "expire_claims", "prune_history"]
LOOKERS += ["top_up_jobs"]
DID_NOTHING = [IDLE, "Cancelled"]


async def _old_runs(
    client: PrefectClient,
    before: datetime,
    *,
    skip: int = 0,
    flows: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> list[FlowRun]:
    """Return one page of the runs that ended before that time, oldest first, after the first `skip`.

    With `flows`, only runs of the flows with these names. With `names`, only runs whose state has one of them.
    """
    return await client.read_flow_runs(
        flow_filter=None if flows is None else flows_named(flows),
        flow_run_filter=runs_with(states=ENDS, state_names=names, ended_before=before),
        sort=FlowRunSort.START_TIME_ASC,
        limit=PAGE,
        offset=skip,
    )


async def _delete_runs(client: PrefectClient, runs: Sequence[FlowRun], before: datetime) -> int:
    """Delete the runs that are still in a final state since before that time. Returns their number."""
    deleted = 0
    for at in range(0, len(runs), BATCH_SIZE):
        ids = [run.id for run in runs[at : at + BATCH_SIZE]]
        wanted = runs_with(ids=ids, states=ENDS, ended_before=before)
        deleted += await prefect_internals.delete_runs(client, wanted)
    return deleted


async def prune_rounds(before: datetime) -> int:
    """Delete old runs of the flows in ROUNDS, and old runs of LOOKERS that did nothing. Returns their number."""
    deleted = 0
    async with get_client() as client:
        for flows, names in ((ROUNDS, None), (LOOKERS, DID_NOTHING)):
            while runs := await _old_runs(client, before, flows=flows, names=names):
                now_deleted = await _delete_runs(client, runs, before)
                deleted += now_deleted
                if not now_deleted:
                    break
    return deleted


async def prune_runs(chain: Chain, before: datetime) -> tuple[int, int]:
    """Delete old runs of all flows, except runs of jobs that are hot on chain. Returns the deleted and the kept."""
    deleted = kept = 0
    async with get_client() as client:
        while runs := await _old_runs(client, before, skip=kept):
            needed = await _runs_to_keep(chain, runs)
            unneeded = [run for run in runs if run.id not in needed]
            now_deleted = await _delete_runs(client, unneeded, before)
            deleted, kept = deleted + now_deleted, kept + len(runs) - now_deleted
            if len(runs) < PAGE:
                break
    return deleted, kept


async def _runs_to_keep(chain: Chain, runs: Sequence[FlowRun]) -> set[UUID]:
    """Return the runs of hot jobs, and of jobs that this chain does not know: another grid may use the same server."""
    jobs = {run.id: job_id for run in runs if (job_id := job_of(run, chain.book)) is not None}
    count = await chain.job_count() if jobs else 0
    known = sorted({job_id for job_id in jobs.values() if 0 < job_id <= count})
    cold = {job.id for job in await chain.jobs(known) if job.status.cold} if known else set()
    return {run_id for run_id, job_id in jobs.items() if job_id not in cold}


def job_of(run: FlowRun, book: AddressBook) -> int | None:
    """Return the job that the run carries: UNKNOWN for a job of another grid, None for a run that carries no job."""
    if not carries_claim(run):
        return None
    claim = claim_of(run, book)
    if claim is None:
        return UNKNOWN
    ours = run.idempotency_key is None or is_key_of(run.idempotency_key, claim)
    return claim.job_id if ours else UNKNOWN
