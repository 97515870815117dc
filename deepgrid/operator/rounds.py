"""The steps of one round of the meta-scheduler: read, decide, assign, tell.

A round can be killed at any line. The contract skips a job that was assigned before. The reasons of assignments are
stored before the transaction, so that the next round can tell the customers of those that were mined.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from deepgrid.chain.figures import TrackRecord
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.market_view import market_of, reliability_of, use_of
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.market import Round, Usage

logger = logging.getLogger(__name__)

SOONEST_S = 5.0  # pause before a round for a job that becomes due

# Contract errors for a job that ended, or that another operator assigned meanwhile.
OVERTAKEN = frozenset({"JobHotStatusOnly", "InvalidTransition", "SameStatusError"})


class Snapshot:
    """What a round reads. No dataclass: Prefect would search its jobs for task runs, which takes seconds."""

    def __init__(
        self, now: int, hot: Sequence[Job], providers: Sequence[tuple[Provider, TrackRecord]],
        refusals: dict[int, dict[str, str]], exhausted: Sequence[Job],
    ) -> None:  # fmt: skip
        """`exhausted` are pending jobs that too many providers gave back."""
        tried = {job.id for job in exhausted}
        self.now = now
        self.hot = hot
        self.providers = providers
        self.refusals = refusals
        self.exhausted = exhausted
        self.pending = [job for job in hot if job.status is JobStatus.PENDING and job.id not in tried]


class Decision:
    """What a round decided, and how long that took. No dataclass, as above."""

    def __init__(self, snapshot: Snapshot, found: Round, use: Usage, seconds: float) -> None:
        self.snapshot = snapshot
        self.found = found
        self.use = use
        self.seconds = seconds


async def read_market(session: OperatorSession) -> Snapshot:
    """Read jobs, clusters and refusals. Settles what an interrupted round left open."""
    await _resolve_promises(session)
    hot, providers, now = await asyncio.gather(session.hot(), session.providers(), session.chain.now())
    pending = [job for job in hot if job.status is JobStatus.PENDING]
    most = session.settings.scheduler.max_tries
    exhausted = [job for job in pending if len(session.memory.given_back(job.id)) >= most]
    return Snapshot(now, hot, providers, await session.refusals(pending), exhausted)


async def decide(session: OperatorSession, seen: Snapshot) -> Decision:
    """Match the pending jobs, in a thread: the event loop stays free."""
    records = {one.address: session.memory.record(one.address, reliability_of(life)) for one, life in seen.providers}
    past = session.store.past_use()

    def match() -> tuple[Round, Usage]:
        market = market_of(seen.hot, [provider for provider, _ in seen.providers], records, seen.now)
        use = use_of(seen.hot, past, seen.now, session.settings.scheduler.half_life_s)
        with session.deciding:  # a thread cannot be cancelled: an earlier attempt may still run
            return session.scheduler.round(seen.pending, market, seen.refusals, use), use

    began = time.monotonic()
    found, use = await asyncio.to_thread(match)
    session.store.put_past_use(use)
    return Decision(seen, found, use, time.monotonic() - began)


async def assign(session: OperatorSession, decision: Decision) -> int:
    """Assign jobs to providers on chain. Returns how many: a job or provider that changed meanwhile is skipped."""
    wanted = decision.found.assignments
    if not wanted:
        return 0
    await _resolve_promises(session)  # of an earlier attempt
    session.store.promise(wanted)
    skipped = await session.writer.meta_schedule_jobs([(one.job_id, one.provider) for one in wanted])
    for lost in skipped:
        logger.info("job %d: not assigned: %s", lost.job_id, lost.reason.message)
    raced = {lost.index for lost in skipped}
    assigned = [one for index, one in enumerate(wanted) if index not in raced]
    session.store.resolve({one.job_id: one.provider for one in assigned})
    session.metrics.assigned(len(assigned))
    for one in assigned:
        session.memory.expect_start(one.job_id, one.estimated_start)
    await session.until_followed((await session.chain.head()).number)  # else the next round assigns them again
    return len(assigned)


async def end_exhausted(session: OperatorSession, decision: Decision) -> int:
    """End jobs that too many providers gave back, with a full refund and the reason. Returns how many."""
    done = [await _end(session, job) for job in decision.snapshot.exhausted]
    return sum(done)


async def tell(session: OperatorSession, decision: Decision, assigned: int) -> None:
    """Tell customers why their jobs wait, plan the next round, and keep the round's figures."""
    waiting = decision.found.waiting
    session.notices.add(session.told.changed(waiting))
    await session.notices.post()
    session.next_round_at = _next_round(session, decision)
    session.metrics.decided(len(waiting), decision.seconds)
    errors_s, session.metrics.errors_s = session.metrics.errors_s, []
    session.store.add_round(
        {
            "at": decision.snapshot.now, "pending": len(decision.snapshot.pending), "assigned": assigned,
            "waiting": len(waiting), "decided_s": round(decision.seconds, 3),
            "start_error_s": round(sum(errors_s) / len(errors_s)) if errors_s else None,
        }
    )  # fmt: skip


def _next_round(session: OperatorSession, decision: Decision) -> float | None:
    """When the first held-back job is due, by the loop's clock; None if only a change can help."""
    starts = [one.estimated_start for one in decision.found.waiting if one.estimated_start]
    if not starts:
        return None
    ahead_s = min(starts) - session.settings.scheduler.assign_ahead_s - decision.snapshot.now
    return asyncio.get_running_loop().time() + max(SOONEST_S, ahead_s)


async def _end(session: OperatorSession, job: Job) -> bool:
    tries = session.memory.given_back(job.id)
    last = tries[-1]
    reason = f"clusters gave it back {len(tries)} times, the limit; the last one was {last.provider}"
    reason += f" ({last.reason})" if last.reason else ""
    try:
        await session.writer.panic_job(job.id, reason)
    except ContractError as error:
        if error.name not in OVERTAKEN:
            raise
        logger.info("job %d: not ended: %s", job.id, error.message)
        return False
    session.notices.add([(job.id, "ended", reason)])
    return True


async def _resolve_promises(session: OperatorSession) -> None:
    """Keep the reasons of assignments that are on the chain, and drop the others."""
    ids = sorted({one.job_id for one in session.store.promised()})
    if not ids:
        return
    count = await session.chain.job_count()
    jobs = await session.chain.jobs([job_id for job_id in ids if job_id <= count])
    session.store.resolve({job.id: job.provider for job in jobs if job.provider is not None})
