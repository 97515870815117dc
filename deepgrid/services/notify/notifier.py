"""Looks at the jobs of customers with subscriptions, notes what is due, and delivers it.

Each event of a job is told once per subscription. A target that does not answer is tried again for some hours, and all
its messages wait together. Subscriptions have turns, so one of them delays no other.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, case, delete, func, select, tuple_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.errors import GridError
from deepgrid.lifecycle.ends import MONEY_ENDING
from deepgrid.lifecycle.exits import outcome
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission.webhook_targets import Answer, Targets
from deepgrid.services.context import Context
from deepgrid.services.notify.subscription_table import DeliveryRecord, SubscriptionRecord
from deepgrid.services.storage.database import NoticeRecord

ENDED, FAILED, WAITING = "ended", "failed", "waiting"
EVENTS = (ENDED, FAILED, WAITING, MONEY_ENDING)
RETRY_S = (60, 300, 1800, 7200, 14400)
AT_ONCE = 20
DELIVERIES_PER_ROUND = 200
PER_SUBSCRIPTION = 5  # of a round
MOST_JOBS = 2000  # of one customer that a round looks at: the newest ones

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NotifierSettings:
    """The interval of the rounds; with `private`, targets at private addresses and by http are allowed."""

    every_s: float = 10.0
    private: bool = False


@dataclass
class EndedJobs:
    """When a customer's jobs ended (`at`, unix seconds by job), as far as these `subscriptions` know it.

    So a round reads hot jobs, and not again and again all that a customer ever had.
    """

    at: dict[int, int] = field(default_factory=dict)
    subscriptions: set[tuple[int, int]] = field(default_factory=set)

    def has_news(self, job_id: int, own: Sequence[SubscriptionRecord]) -> bool:
        """Return whether a subscription may have to be told of a job."""
        ended_at = self.at.get(job_id)
        if ended_at is None:
            return True
        return any(ended_at >= one.created_at and (one.id, one.created_at) not in self.subscriptions for one in own)


async def notify_for_ever(context: Context, targets: Targets, every_s: float) -> None:
    """Run a round every `every_s` seconds. A failed round is repeated by the next one."""
    ended: dict[str, EndedJobs] = {}
    while True:
        try:
            await note_due(context, ended)
            await deliver_due(context, targets)
        except GridError as error:
            logger.warning("messages to customers are delayed, trying again: %s", error.message)
        except SQLAlchemyError as error:
            logger.warning("messages to customers are delayed, trying again: %s", type(error).__name__)
        except Exception:  # a bug must not end the messages for good
            logger.exception("messages to customers are delayed, trying again: unexpected error")
        await asyncio.sleep(every_s)


async def note_due(context: Context, ended: dict[str, EndedJobs] | None = None) -> None:
    """Note the messages that are due. `ended` keeps what is known of each customer's jobs between rounds.

    A customer whose jobs cannot be read waits for the next round, and delays no other.
    """
    async with context.database.read() as session:
        subscriptions = (await session.scalars(select(SubscriptionRecord).order_by(SubscriptionRecord.id))).all()
    ended = {} if ended is None else ended
    of_customer: dict[str, list[SubscriptionRecord]] = {}
    for one in subscriptions:
        of_customer.setdefault(one.customer, []).append(one)
    for gone in set(ended) - set(of_customer):
        del ended[gone]
    for customer, own in of_customer.items():
        try:
            await _note_customer(context, customer, own, ended.setdefault(customer, EndedJobs()))
        except GridError as error:
            logger.warning("messages to customers are delayed, trying again: %s", error.message)


async def _note_customer(context: Context, customer: str, own: Sequence[SubscriptionRecord], ended: EndedJobs) -> None:
    """Note what is due for the subscriptions of one customer, whose jobs are read once for all of them."""
    first = min(one.first for one in own)
    ids = await context.chain.jobs_by_customer(customer, first)
    left_out = max(0, len(ids) - MOST_JOBS)
    wanted = [job_id for job_id in ids[left_out:] if ended.has_news(job_id, own)]
    jobs = await context.chain.jobs(wanted) if wanted else []
    ending = await _ending(context, [job for job in jobs if job.status.hot])
    ended_at = ended.at | {job.id: job.ended_at for job in jobs if job.status.cold}
    for one in own:
        start = max(one.first - first, left_out)
        its_ids = ids[start:]
        may_tell = set(its_ids)
        due = [
            (job, event, text)
            for job in jobs
            if job.id in may_tell
            for event, text in events_of(job, one, context.clock(), ending.get(job.id, ""))
            if event in one.events.split(",")
        ]
        over = next((at for at, job_id in enumerate(its_ids) if job_id not in ended_at), len(its_ids))
        oldest = its_ids[0] if its_ids else 2**63 - 1
        await _note(context, one, due, first + start + over, oldest)
    kept = set(ids[left_out:])
    ended.at = {job_id: at for job_id, at in ended_at.items() if job_id in kept}
    ended.subscriptions = {(one.id, one.created_at) for one in own}


async def _ending(context: Context, jobs: Sequence[Job]) -> dict[int, str]:
    """Return the newest notices of the jobs' own clusters that their bought time ends."""
    providers = {job.id: job.provider for job in jobs}
    wanted = select(NoticeRecord).where(NoticeRecord.kind == MONEY_ENDING, NoticeRecord.job_id.in_(providers))
    async with context.database.read() as session:
        found = (await session.scalars(wanted.order_by(NoticeRecord.id))).all()
    return {notice.job_id: notice.text for notice in found if notice.author == providers[notice.job_id]}


def events_of(job: Job, subscription: SubscriptionRecord, now: int, ending: str) -> Iterator[tuple[str, str]]:
    """Yield the events of a job that a customer may want to know, each with a text."""
    if job.status.cold:
        if job.ended_at >= subscription.created_at:
            failed = job.status in (JobStatus.FAILED, JobStatus.PANICKED, JobStatus.OUT_OF_CREDITS)
            yield (FAILED if failed else ENDED), outcome(job) or job.status.words
        return
    waits_s = now - job.submitted_at
    if job.status <= JobStatus.SCHEDULED and waits_s >= 60 * subscription.wait_minutes:
        yield WAITING, f"it waits for more than {subscription.wait_minutes} minutes"
    if ending:
        yield MONEY_ENDING, ending


async def _note(
    context: Context, one: SubscriptionRecord, due: Sequence[tuple[Job, str, str]], first: int, oldest: int
) -> None:
    """Note messages, and forget the messages on jobs older than the `oldest` that may have news."""
    async with context.database.write() as session:
        if await session.scalar(_same(one).with_for_update()) is None:  # deleted, and its number may be another's
            return
        for job, event, text in due:
            if await session.get(DeliveryRecord, (one.id, job.id, event)) is None:
                body = json.dumps(_message(context, job, event, text))
                row = DeliveryRecord(subscription=one.id, job_id=job.id, event=event, body=body, tries=0)
                row.next_at = context.clock()
                session.add(row)
        told = DeliveryRecord.next_at == 0, DeliveryRecord.job_id < oldest
        await session.execute(delete(DeliveryRecord).where(DeliveryRecord.subscription == one.id, *told))
        await session.execute(update(SubscriptionRecord).where(SubscriptionRecord.id == one.id).values(first=first))


def _message(context: Context, job: Job, event: str, text: str) -> dict[str, Any]:
    return {
        "event": event,
        "job": job.id,
        "name": job.name,
        "status": job.status.words,
        "text": text,
        "customer": job.customer,
        "chain_id": context.domain.chain_id,
        "meta_scheduler": context.domain.verifying_contract,
        "at": context.clock(),
    }


async def deliver_due(context: Context, targets: Targets) -> None:
    """Deliver the messages that are due. Each is taken before it is sent, so two processes do not send it at once."""
    now, slots = context.clock(), asyncio.Semaphore(AT_ONCE)
    async with context.database.write() as session:
        rows = await _take(session, now)
        ids = {row.subscription for row in rows}
        known = (await session.scalars(select(SubscriptionRecord).where(SubscriptionRecord.id.in_(ids)))).all()

    async def turn(one: SubscriptionRecord) -> None:
        async with slots:
            await _turn(context, targets, one, [row for row in rows if row.subscription == one.id], now)

    await asyncio.gather(*map(turn, known))


async def _take(session: AsyncSession, now: int) -> Sequence[DeliveryRecord]:
    """Take due messages, the first of each subscription before the second of any. Each is due again later."""
    due = DeliveryRecord.next_at > 0, DeliveryRecord.next_at <= now
    key = DeliveryRecord.subscription, DeliveryRecord.job_id, DeliveryRecord.event
    oldest = DeliveryRecord.next_at, DeliveryRecord.job_id, DeliveryRecord.event
    place = func.row_number().over(partition_by=DeliveryRecord.subscription, order_by=oldest).label("place")
    queue = select(*key, DeliveryRecord.next_at, place).where(*due).subquery()
    first = select(queue.c.subscription, queue.c.job_id, queue.c.event).where(queue.c.place <= PER_SUBSCRIPTION)
    first = first.order_by(queue.c.place, queue.c.next_at, queue.c.subscription).limit(DELIVERIES_PER_ROUND)
    wanted = select(DeliveryRecord).where(tuple_(*key).in_(first), *due).order_by(*oldest)
    rows = (await session.scalars(wanted.with_for_update(skip_locked=True))).all()
    for row in rows:
        row.next_at = now + RETRY_S[row.tries] if row.tries < len(RETRY_S) else 0
        row.tries += 1
    return rows


async def _turn(
    context: Context, targets: Targets, one: SubscriptionRecord, rows: Sequence[DeliveryRecord], now: int
) -> None:
    """Deliver the taken messages of a subscription one after another, until its target is silent or too slow."""
    url, key = json.loads(context.vault.unseal(one.sealed))
    loop = asyncio.get_running_loop()
    until = loop.time() + targets.timeout_s
    for at, row in enumerate(rows):
        if loop.time() > until:
            left = [(late.job_id, late.event) for late in rows[at:]]
            not_sent = tuple_(DeliveryRecord.job_id, DeliveryRecord.event).in_(left)
            await _change(context, one, not_sent, next_at=now, tries=DeliveryRecord.tries - 1)
            return
        answer = await targets.post(url, key, row.body.encode())
        if answer is Answer.TAKEN:
            sent = (DeliveryRecord.job_id == row.job_id) & (DeliveryRecord.event == row.event)
            await _change(context, one, sent, next_at=0)
        elif answer is Answer.SILENT:
            others = (DeliveryRecord.next_at > 0) & (DeliveryRecord.next_at < now + RETRY_S[0])
            waits = {tries: now + wait_s for tries, wait_s in enumerate(RETRY_S)}
            again = case(waits, value=DeliveryRecord.tries, else_=0)
            await _change(context, one, others, next_at=again, tries=DeliveryRecord.tries + 1)
            return


async def _change(context: Context, one: SubscriptionRecord, which: ColumnElement[bool], **values: Any) -> None:
    """Change messages of this subscription, unless it was deleted meanwhile."""
    same = DeliveryRecord.subscription.in_(_same(one))
    async with context.database.write() as session:
        await session.execute(update(DeliveryRecord).where(same, which).values(**values))


def _same(one: SubscriptionRecord) -> Select[tuple[int]]:
    """Find this subscription. After a deletion, SQLite may give its number to another one."""
    found = select(SubscriptionRecord.id).where(SubscriptionRecord.id == one.id)
    return found.where(SubscriptionRecord.customer == one.customer, SubscriptionRecord.created_at == one.created_at)


async def forget_subscription(context: Context, subscription_id: int, customer: str) -> bool:
    """Delete a customer's subscription with its messages. Returns whether there was one."""
    async with context.database.write() as session:
        own = SubscriptionRecord.id == subscription_id, SubscriptionRecord.customer == customer
        gone = await session.scalar(delete(SubscriptionRecord).where(*own).returning(SubscriptionRecord.id))
        if gone is not None:
            await session.execute(delete(DeliveryRecord).where(DeliveryRecord.subscription == gone))
    return gone is not None
