"""The steps of one round of the meta-scheduler: read, decide, assign, notify.

A round can be killed at any line. The contract skips a job that was assigned before. The reasons of assignments are
stored before the transaction, so that the next round can notify the customers whose assignment was mined.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence

from deepgrid.chain.node.values import TrackRecord
from deepgrid.chain.transactions.contract_errors import unless_overtaken
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.observability.action_taken import ActionTaken
from deepgrid.operator.chained_jobs import NOT_CHAINED, Chained, doomed_until, read_chained
from deepgrid.operator.session import Entry, OperatorSession
from deepgrid.operator.use_ledger import holds_of
from deepgrid.scheduling.expiry import gives_up_at, in_turns
from deepgrid.scheduling.market import ClusterState, HotJob, Market, Reliability, Round, Usage
from deepgrid.scheduling.past_use import usage_at
from deepgrid.scheduling.rounds.scheduler import Refusals
from deepgrid.scheduling.speed import measured_speeds

logger = logging.getLogger(__name__)

ENDS_PER_ROUND = 100  # jobs whose ends fit in a block; the next round ends the others
SOONEST_S = 5.0  # pause before a round for a job that becomes due

# Contract errors of a panic: the job ended, or another operator assigned it meanwhile.
OVERTAKEN = frozenset({"JobHotStatusOnly", "InvalidTransition", "SameStatusError"})

GIVEN_UP = "no cluster took it before the time to give up; it is cancelled with a full refund"


class Snapshot:
    """The input of a round. Not a dataclass: Prefect would search its jobs for task runs, which takes seconds."""

    def __init__(
        self,
        now: int,
        hot: Sequence[Job],
        providers: Sequence[Entry],
        refusals: Refusals,
        exhausted: Sequence[Job] = (),
        given_up: Sequence[Job] = (),
        chained: Chained = NOT_CHAINED,
        raised_at: Mapping[str, int] = {},
    ) -> None:
        """Pending jobs: `exhausted` were given back by too many providers, `given_up` must not be assigned any more.

        `raised_at` has the time of each provider's last raise of a price, if a job depends on it.
        """
        over = {job.id for job in (*exhausted, *given_up, *chained.all)}
        self.now = now
        self.hot = hot
        self.providers = providers
        self.refusals = refusals
        self.exhausted = exhausted
        self.given_up = given_up
        self.in_vain = chained.in_vain
        self.doomed = chained.doomed
        self.chained_waiting = chained.waiting
        self.raised_at = raised_at
        self.pending = [job for job in hot if job.status is JobStatus.PENDING and job.id not in over]
        due = [job for job in given_up if gives_up_at(job) <= now]
        self.to_end = in_turns([*exhausted, *due, *chained.in_vain])

    @property
    def is_empty(self) -> bool:
        """Whether a round has nothing to do."""
        return not (self.pending or self.exhausted or self.given_up or self.in_vain or self.doomed)


class Decision:
    """The decision of a round, and its duration. Not a dataclass, as above."""

    def __init__(self, snapshot: Snapshot, found: Round, use: Usage, seconds: float) -> None:
        self.snapshot = snapshot
        self.found = found
        self.use = use
        self.seconds = seconds


async def read_market(session: OperatorSession) -> Snapshot:
    """Read jobs, clusters and refusals. Settles what an interrupted round left open."""
    await _resolve_promises(session)
    hot, providers, now = await asyncio.gather(session.hot(), session.providers(), session.chain.next_block_time())
    pending = [job for job in hot if job.status is JobStatus.PENDING]
    chained = await read_chained(session, pending, now)
    given_up = [job for job in pending if 0 < job.wishes.give_up_at <= now]
    over = {job.id for job in (*given_up, *chained.all)}
    vain = {job.id for job in (*chained.in_vain, *chained.doomed)}
    given_up = [job for job in given_up if job.id not in vain]
    rest = [job for job in pending if job.id not in over]
    most = session.settings.scheduler.max_tries
    exhausted = [job for job in rest if len(session.memory.given_back(job.id)) >= most]
    refusals, raised_at = await asyncio.gather(session.refusals(rest), _raised_at(session, rest, providers))
    return Snapshot(now, hot, providers, refusals, exhausted, given_up, chained, raised_at)


async def decide(session: OperatorSession, seen: Snapshot) -> Decision:
    """Match the pending jobs, in a thread: the event loop stays free."""
    records = {one.address: session.memory.record(one.address, _whole_life(life)) for one, life in seen.providers}
    accounts = session.memory.use.accounts()

    def match() -> tuple[Round, Usage]:
        market = _market_of(seen, records)
        use = usage_at(seen.now, accounts, holds_of(seen.hot), session.settings.scheduler)
        with session.deciding:  # a thread cannot be cancelled: an earlier attempt may still run
            return session.scheduler.round(seen.pending, market, seen.refusals, use), use

    began = time.monotonic()
    found, use = await asyncio.to_thread(match)
    session.memory.use.note_reservations((one.job_id for one in found.waiting if one.has_reservation), seen.now)
    session.memory.use.forget_negligible(seen.now)
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


async def end_jobs(session: OperatorSession, seen: Snapshot) -> list[ActionTaken]:
    """End the jobs that wait in vain, with a full refund and a notice. Returns the ended ones.

    A job that too many providers gave back panics with the reason. A job is cancelled when its customer's time to give
    up has come, and when it waits for a job to finish that ended in another way. Customers take turns.
    """
    exhausted = {job.id for job in seen.exhausted}
    ends = seen.to_end[:ENDS_PER_ROUND]
    panics = [_panic(session, job) for job in ends if job.id in exhausted]
    in_vain = {job.id for job in seen.in_vain}
    done = await asyncio.gather(_give_up(session, [job for job in ends if job.id not in exhausted], in_vain), *panics)
    await session.until_followed((await session.chain.head()).number)
    return [one for ended in done for one in ended]


async def tell(session: OperatorSession, decision: Decision, assigned: int, ended: int = 0) -> None:
    """Tell customers why their jobs wait, plan the next round, and keep the round's figures."""
    waiting = decision.found.waiting
    session.notices.add(await asyncio.to_thread(session.waiting_notices.changed, waiting))
    await session.notices.post()
    session.next_round_at = _next_round(session, decision, ended)
    session.metrics.decided(len(waiting), decision.seconds)
    errors_s, session.metrics.errors_s = session.metrics.errors_s, []
    error_s = round(sum(errors_s) / len(errors_s)) if errors_s else None
    seen = decision.snapshot
    counts = {"at": seen.now, "pending": len(seen.pending), "assigned": assigned, "waiting": len(waiting)}
    session.store.add_round({**counts, "decided_s": round(decision.seconds, 3), "start_error_s": error_s})


def _next_round(session: OperatorSession, decision: Decision, ended: int) -> float | None:
    """Return when the first job is due or given up, by the loop's clock; None if only a change can help."""
    seen, ahead_s = decision.snapshot, session.settings.scheduler.assign_ahead_s
    due = [one.estimated_start - ahead_s - seen.now for one in decision.found.waiting if one.estimated_start]
    due += [decision.use.waits[job.customer] - seen.now for job in seen.pending if job.customer in decision.use.waits]
    due += [max(0, doomed_until(job) - seen.now) for job in seen.doomed]
    waiting = [*seen.pending, *seen.given_up, *seen.chained_waiting]
    due += [max(0, gives_up_at(job) - seen.now) for job in waiting if gives_up_at(job)]
    if decision.found.left or len(seen.to_end) > ended:
        due.append(0)
    return asyncio.get_running_loop().time() + max(SOONEST_S, min(due)) if due else None


async def _raised_at(session: OperatorSession, jobs: Sequence[Job], providers: Sequence[Entry]) -> dict[str, int]:
    """Return when each provider raised its prices, if a job without a maximum price depends on it."""
    if all(job.wishes.max_rate_wei for job in jobs):
        return {}
    return await session.chain.raised_at([provider.address for provider, _ in providers if provider.in_force])


def _market_of(seen: Snapshot, records: Mapping[str, Reliability]) -> Market:
    """Return the clusters in force, each with its hot jobs: running ones first, then its queue in order."""
    busy: dict[str, list[HotJob]] = {}
    for job in sorted(seen.hot, key=lambda job: (-job.status, job.assigned_at, job.id)):
        if job.provider is not None:
            busy.setdefault(job.provider, []).append(HotJob.of(job, seen.now))
    clusters = [
        ClusterState(
            one,
            busy.get(one.address, ()),
            records.get(one.address, Reliability()),
            measured_speeds(one),
            seen.raised_at.get(one.address, 0),
        )
        for one, _ in seen.providers
        if one.in_force
    ]
    return Market(clusters, seen.now)


def _whole_life(record: TrackRecord) -> Reliability:
    return Reliability.of_life(record.started, record.refused, record.panicked, record.timed_out)


async def _panic(session: OperatorSession, job: Job) -> list[ActionTaken]:
    tries = session.memory.given_back(job.id)
    last = tries[-1]
    reason = f"clusters gave it back {len(tries)} times, the limit; the last one was {last.provider}"
    reason += f" ({last.reason})" if last.reason else ""
    if error := await unless_overtaken(session.writer.panic_job(job.id, reason), OVERTAKEN):
        logger.info("job %d: not ended: %s", job.id, error.message)
        return []
    session.notices.add([(job.id, "ended", reason)])
    return [ActionTaken("ended", "job", reason, job.id, customer=job.customer)]


async def _give_up(session: OperatorSession, jobs: Sequence[Job], in_vain: Collection[int]) -> list[ActionTaken]:
    """Cancel jobs. Returns the ended ones: one that changed meanwhile, or is early by the chain's clock, is skipped."""
    skipped = {lost.job_id: lost.reason for lost in await session.writer.give_up_jobs([job.id for job in jobs])}
    for job_id, reason in skipped.items():
        logger.info("job %d: not ended: %s", job_id, reason.message)
    ended = [job for job in jobs if job.id not in skipped]
    texts = {job.id: _in_vain(job) if job.id in in_vain else GIVEN_UP for job in ended}
    session.notices.add([(job_id, "ended", text) for job_id, text in texts.items()])
    return [ActionTaken("ended", "job", texts[job.id], job.id, customer=job.customer) for job in ended]


def _in_vain(job: Job) -> str:
    return f"it waited for job {job.wishes.after_job} to finish, which did not; it is cancelled with a full refund"


async def _resolve_promises(session: OperatorSession) -> None:
    """Keep the reasons of assignments that are on the chain, and drop the others."""
    ids = sorted({one.job_id for one in session.store.promised()})
    if not ids:
        return
    count = await session.chain.job_count()
    jobs = await session.chain.jobs([job_id for job_id in ids if job_id <= count])
    session.store.resolve({job.id: job.provider for job in jobs if job.provider is not None})
    session.notices.add(())  # the resolved ones are due now
