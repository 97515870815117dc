"""The invariants of every job after a round, read from the chain and Slurm, not from the supervisor."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deepgrid.chain.node.contract import Event
from deepgrid.chain.node.values import Queues
from deepgrid.lifecycle.decide import LOST
from deepgrid.lifecycle.ends import REQUEUED
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import started_minutes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.observe.run_records import GUARDED, first_end
from deepgrid.slurm.observe.verdict import FORGOTTEN, REFUSED_START
from deployments.onemachine.clusters import OFFERS
from tests.chaos.batch import Batch
from tests.chaos.fault import Allowed
from tests.chaos.kinds import slurm_name
from tests.chaos.world import World
from tests.grid.runs import run_now, unscheduled

BLOCKS_AT_ONCE = 2000
GONE_WITHIN_S = 180.0
ANSWERS_WITHIN_S = 30.0
ENDED = "COMPLETING"  # its record is written, but nodes still clean up
NO_STEP = re.compile(r"srun: error: (Unable to (create step|confirm allocation)|(Task|Application) launch)")
LOSSES = (LOST, FORGOTTEN.reason, REFUSED_START.reason)


@dataclass(frozen=True)
class Evidence:
    """All evidence about one job. `rows` are Slurm's, by comment; `starts` are the Slurm ids that ran the payload.

    `said` is the end of its output.
    """

    job: Job
    settlements: list[Event]
    claims: list[Event]
    rows: dict[str, list[Row]]
    starts: list[str]
    left: list[str]
    said: str = ""


async def judge(world: World, batch: Batch, allows: Collection[Allowed]) -> list[str]:
    """Return one sentence for each violated invariant; empty when all hold."""
    wrong: list[str] = []
    found = await _once_gone(world, batch, ending_only=True)
    if Allowed.LOST in allows and any(seen.left for seen in found):
        await _collect(world)
        found = await _once_gone(world, batch)
    for seen in found:
        wrong += [f"job {seen.job.id} ({batch.kinds[seen.job.id].name}): {what}" for what in faults_of(
            seen, batch, allows)]  # fmt: skip
    queues = await world.chain.queues(world.provider)
    if queues != Queues(0, 0, 0):
        wrong.append(f"the provider's queues on chain hold {queues}")
    if claimed := await world.chain.claimed_jobs(world.provider):
        wrong.append(f"jobs {claimed} are still claimed")
    return wrong


async def _collect(world: World) -> None:
    """Run the zombie collection once, because a controller that forgot a cancellation restores the job."""
    name = f"collect_zombies/{world.cluster}"
    async with unscheduled(world.grid, name):
        run = await run_now(world.grid, name)
    assert run["state"]["type"] == "COMPLETED", f"the collector's run {run['state']}"


async def _once_gone(world: World, batch: Batch, *, ending_only: bool = False) -> list[Evidence]:
    """Return the evidence after Slurm has none of the jobs, or none of the ended ones.

    Its nodes need time to clean up.
    """
    deadline = time.monotonic() + GONE_WITHIN_S
    while True:
        found = await gather(world, batch)
        left = [state for seen in found for state in seen.left if state == ENDED or not ending_only]
        if not left or time.monotonic() > deadline:
            return found
        await asyncio.sleep(1)


async def gather(world: World, batch: Batch) -> list[Evidence]:
    """Return the evidence of chain and clusters about the jobs of the batch."""
    head = (await world.chain.head()).number
    events: list[Event] = []
    for first in range(batch.first_block, head + 1, BLOCKS_AT_ONCE):
        names = ("JobSettledEvent", "ClaimJobEvent")
        events += await world.chain.events(first, min(head, first + BLOCKS_AT_ONCE - 1), names)
    by_job: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        by_job[event.job_id].append(event)
    jobs = await world.chain.jobs(list(batch.kinds))
    rows = _by_name(row for offer in OFFERS for row in _slurm_rows(world, offer.name, jobs, batch.began_at))
    left = [line.split() for offer in OFFERS for line in _slurm(world, offer.name, "squeue", "-h", "-a", "-o", "%j %T")]
    return [
        Evidence(
            job=job,
            settlements=[event for event in by_job[job.id] if event.name == "JobSettledEvent"],
            claims=[event for event in by_job[job.id] if event.name == "ClaimJobEvent"],
            rows=by_comment(rows[slurm_name(job.id)]),
            starts=_starts(world, job),
            said=said_by(world, job.id),
            left=[state for name, state in left if name == slurm_name(job.id)],
        )
        for job in jobs
    ]


def faults_of(seen: Evidence, batch: Batch, allows: Collection[Allowed]) -> list[str]:
    job, wrong = seen.job, []
    if not job.status.cold:
        return [f"is {job.status.words}"]
    if len(seen.settlements) != 1:
        return [f"was settled {len(seen.settlements)} times"]
    if len(seen.starts) > len(seen.claims):
        wrong.append(f"ran {len(seen.starts)} times for {len(seen.claims)} claims")
    for comment, rows in seen.rows.items():
        if len(ids := {row.slurm_id for row in rows}) > 1:
            wrong.append(f"Slurm accepted {sorted(ids)} for {comment}")
    if len(seen.rows) > len(seen.claims):
        wrong.append(f"was submitted for {len(seen.rows)} claims of {len(seen.claims)}")
    if seen.left:
        wrong.append(f"is still in Slurm: {', '.join(seen.left)}")
    return [*wrong, *_wrong_end(seen, batch, allows), *_wrong_bill(seen, allows)]


def _wrong_end(seen: Evidence, batch: Batch, allows: Collection[Allowed]) -> list[str]:
    job, kind = seen.job, batch.kinds[seen.job.id]
    if job.status is JobStatus.PANICKED and Allowed.LOST in allows and job.last_error in LOSSES:
        return []
    if job.status is JobStatus.FAILED and Allowed.ENDED in allows and job.last_error == "cancelled at the cluster":
        return []
    if job.status is JobStatus.FAILED and Allowed.REQUEUED in allows and job.last_error == REQUEUED.error:
        return []
    if job.status is JobStatus.FAILED and Allowed.FAULT in allows and job.last_error and not job.final_cost_wei:
        return []
    wrong = []
    if job.status is JobStatus.FAILED and Allowed.STEP in allows and NO_STEP.search(seen.said):
        pass
    elif job.status not in kind.ends:
        why = job.last_error or "no reason"
        wrong.append(f"is {job.status.words} ({why}, status {job.exit_status}), and said: {seen.said or 'nothing'}")
    elif kind.exit_status is not None and job.exit_status != kind.exit_status:
        wrong.append(f"ended with wait status {job.exit_status}")
    if len(seen.claims) > 1 and Allowed.REFUSED not in allows:
        wrong.append(f"was claimed {len(seen.claims)} times")
    if job.id in batch.topped_up and job.granted_minutes * job.rate_wei_per_minute + job.rate_wei_per_minute <= (
        job.locked_wei
    ):
        wrong.append(f"was granted {job.granted_minutes} minutes for {job.locked_wei} wei")
    return wrong


def _wrong_bill(seen: Evidence, allows: Collection[Allowed]) -> list[str]:
    """Check the billed minutes, and that the amounts add up to the wei."""
    job, args = seen.job, seen.settlements[0].args
    wrong = []
    if args["paid"] + args["cut"] + args["refunded"] + job.released_wei != job.locked_wei:
        wrong.append(f"{args['paid']} + {args['cut']} + {args['refunded']} wei are not the locked {job.locked_wei}")
    if args["paid"] + args["cut"] != job.final_cost_wei:
        wrong.append(f"{args['paid']} + {args['cut']} wei are not the cost {job.final_cost_wei}")
    if args["billedMinutes"] != (minutes := ran_minutes(seen, allows)):
        wrong.append(f"was billed {args['billedMinutes']} minutes for {minutes}")
    if job.final_cost_wei != min(minutes * job.rate_wei_per_minute, job.locked_wei):
        wrong.append(f"cost {job.final_cost_wei} wei for {minutes} minutes at {job.rate_wei_per_minute}")
    if wrong:
        start = f"started on chain at {job.started_at}" if job.started_at else "never started on chain"
        rows = "; ".join(str(row) for rows in seen.rows.values() for row in rows) or "no rows"
        wrong.append(
            f"{start}, ended with {job.last_error or 'no error'}, payloads {seen.starts}, and Slurm has: {rows}"
        )
    return wrong


def ran_minutes(seen: Evidence, allows: Collection[Allowed]) -> int:
    """Return the minutes in Slurm's first final record of the last claim, at most the granted ones. The result is 0 for
    faults of the provider.

    A second start that was refused is no run, because no kind of job ends like that.
    """
    job = seen.job
    comment = next((text for text in seen.rows if text.endswith(f":{job.claimed_at}")), "")
    end = first_end(row for row in seen.rows.get(comment, []) if row.exit_status != GUARDED)
    known = end is not None and end.started_at is not None and end.ended_at is not None
    # A cancelled job owes its fee, even if it was barred before its start or a controller forgot the cancellation.
    barred = any(row.exit_status == GUARDED for row in seen.rows.get(comment, []))
    began = known or seen.starts or barred or Allowed.LOST in allows
    if job.status is JobStatus.PANICKED or not (known or (job.status is JobStatus.CANCELLED and began)):
        return 0
    if job.status is JobStatus.FAILED and job.last_error and not job.final_cost_wei:
        return 0
    minutes = min(started_minutes(end.started_at, end.ended_at), job.granted_minutes) if known else 0
    if job.status is JobStatus.CANCELLED:
        if not job.started_at:
            return 0
        # Without a request there is no fee. A reorganisation may drop the request, and the answer is mined again first.
        return max(minutes, min(job.fee_minutes, job.granted_minutes)) if job.has_cancel_request else minutes
    return minutes


def _slurm_rows(world: World, cluster: str, jobs: Iterable[Job], since: int) -> list[Row]:
    """Return the completion records of these jobs, in the spool or in the job's folder, and their accounting."""
    login = world.grid.slurm.login(cluster)
    names = {slurm_name(job.id) for job in jobs}
    found: list[Row] = []
    for place in ("spool/[0-9]*", "jobs/*/record"):
        for file in Path(login.grid_root).glob(place):
            with suppress(FileNotFoundError):  # acknowledged meanwhile, so it is read from the job's folder
                if file.stat().st_mtime < since:
                    continue
                found += [row for row in Completions.parse(file.read_text()) if row.name in names]
    *asked, columns = Sacct(since - 3600, names=sorted(names)).argv()
    lines = _slurm(world, cluster, *asked, f"{columns},JobName,Comment")
    return found + [row for line in lines for row in _named(line)]


def _named(line: str) -> list[Row]:
    """Return the rows of accounting that have a name and a comment. No job of these tests forges them."""
    trusted, name, comment = line.rsplit("|", 2)
    return [replace(row, name=name, comment=comment) for row in Sacct.parse(trusted)]


def said_by(world: World, job_id: int) -> str:
    """Return the end of the output of the job's claims on any cluster."""
    folders = (Path(world.grid.slurm.login(offer.name).grid_root) / "jobs" for offer in OFFERS)
    files = (file for folder in folders for file in folder.glob(f"*-{job_id}-*/output.log"))
    return " | ".join(file.read_text(errors="replace")[-500:].strip() for file in files)


def _slurm(world: World, cluster: str, *argv: str) -> list[str]:
    env = {**os.environ, **world.grid.slurm.environment(cluster)}
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        if not done.returncode or time.monotonic() > deadline:
            done.check_returncode()
            return done.stdout.splitlines()
        time.sleep(1)


def _by_name(rows: Iterable[Row]) -> dict[str, list[Row]]:
    named: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        named[row.name].append(row)
    return named


def by_comment(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return a job's rows by claim.

    A controller that died may not have reported an end to accounting. Then accounting keeps a row without a comment.
    If the run has a completion record, that row is not another run.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.comment].append(row)
    recorded = {row.slurm_id for comment, some in found.items() if comment for row in some}
    unnamed = [row for row in found.pop("", ()) if row.slurm_id not in recorded]
    return {**found, **({"": unnamed} if unnamed else {})}


def _starts(world: World, job: Job) -> list[str]:
    file = world.starts / slurm_name(job.id)
    return file.read_text().split() if file.exists() else []


def outcomes(batch: Batch, job_ids: Iterable[int]) -> Counter[str]:
    """Return the final states of these jobs, in words."""
    return Counter(batch.latest[job_id].status.words for job_id in job_ids)
