"""Webhooks: a customer gets one signed message per event of their own jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from deepgrid.errors import AccessDenied, InputError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission.webhook_targets import Answer, Targets
from deepgrid.services.client.subscriptions_client import subscribe, subscriptions, unsubscribe
from deepgrid.services.notify.notifier import EVENTS, NotifierSettings, deliver_due, note_due
from deepgrid.services.notify.subscription_table import DeliveryRecord, SubscriptionRecord
from tests.services.support import ACCOUNTS, Grid, Start, client_of, session_key
from tests.services.webhook_support import Webhook, webhook

NEVER_S = 10_000.0
HASH = "0" * 64


@pytest.fixture
async def told(start: Start) -> Grid:
    """Services that may call this machine. A test runs their rounds."""
    return await start(notifier=NotifierSettings(every_s=NEVER_S, private=True))


@pytest.fixture
async def hook() -> AsyncIterator[Webhook]:
    async with webhook() as made:
        yield made


async def a_round(grid: Grid) -> None:
    await note_due(grid.context)
    await deliver_due(grid.context, grid.context.targets)


async def test_each_event_is_told_once(told: Grid, hook: Webhook) -> None:
    now = int(told.clock())
    told.chain.put(1, HASH, JobStatus.FINISHED, ended_at=now - 100)
    made = await subscribe(told.customer, hook.url, EVENTS, 5)
    told.chain.put(2, HASH, JobStatus.PENDING, submitted_at=now - 301, provider=None)
    told.chain.put(3, HASH, JobStatus.RUNNING, submitted_at=now - 301)
    told.chain.put(4, HASH, JobStatus.FAILED, ended_at=now + 1, exit_status=768)
    told.chain.put(5, HASH, JobStatus.RUNNING, customer=ACCOUNTS["rival"].address)
    await told.provider.post_notice(3, "money-ending", "the bought time ends at 12:40 UTC")
    for _ in range(3):
        await a_round(told)
    seen = {(one["job"], one["event"], one["text"]) for one in hook.messages}
    assert seen == {
        (2, "waiting", "it waits for more than 5 minutes"),
        (3, "money-ending", "the bought time ends at 12:40 UTC"),
        (4, "failed", "exit status 3"),
    }
    assert len(hook.requests) == len(seen)
    assert hook.is_signed_by(made.key)
    told.chain.put(2, HASH, JobStatus.FINISHED, ended_at=now + 2)
    await a_round(told)
    assert (hook.messages[-1]["job"], hook.messages[-1]["event"]) == (2, "ended")


async def test_only_wanted_events_are_told_until_the_end_of_the_subscription(told: Grid, hook: Webhook) -> None:
    made = await subscribe(told.customer, hook.url, ["failed"], 60)
    told.chain.put(1, HASH, JobStatus.FINISHED, ended_at=int(told.clock()) + 1)
    await a_round(told)
    assert hook.messages == []
    (shown,) = await subscriptions(told.customer)
    assert (shown.id, shown.host, shown.events) == (made.id, "127.0.0.1", ["failed"])
    with pytest.raises(NotFound):
        await unsubscribe(told.rival, made.id)
    await unsubscribe(told.customer, made.id)
    told.chain.put(2, HASH, JobStatus.FAILED, ended_at=int(told.clock()) + 1)
    await a_round(told)
    assert hook.messages == []


async def test_a_target_that_is_away_is_tried_again(told: Grid, hook: Webhook) -> None:
    told.clock.stop()
    await subscribe(told.customer, hook.url, EVENTS, 60)
    told.chain.put(1, HASH, JobStatus.FINISHED, ended_at=int(told.clock()) + 1)
    hook.failures = 2
    for _ in range(3):
        await a_round(told)
        await a_round(told)
        told.clock.ahead_s += 400
    assert [one["event"] for one in hook.messages] == ["ended"]


async def test_a_slow_target_waits_for_its_next_turn(told: Grid) -> None:
    """Its other messages lose no try, and are due at once."""
    told.clock.stop()
    bodies = []

    class Slow(Targets):
        async def post(self, url: str, key: str, body: bytes) -> Answer:
            bodies.append(body)
            await asyncio.sleep(2 * self.timeout_s)
            return Answer.TAKEN

    await subscribe(told.customer, "http://127.0.0.1:1/", EVENTS, 60)
    for job_id in (1, 2, 3):
        told.chain.put(job_id, HASH, JobStatus.FINISHED, ended_at=int(told.clock()) + 1)
    await note_due(told.context)
    targets = Slow(private=True, timeout_s=0.05)
    for sent in (1, 2, 3, 3):
        await deliver_due(told.context, targets)
        async with told.context.database.read() as session:
            rows = (await session.scalars(select(DeliveryRecord).order_by(DeliveryRecord.job_id))).all()
        assert (len(bodies), [row.tries for row in rows]) == (sent, [1] * sent + [0] * (3 - sent))
    await targets.close()


async def test_notices_of_others_tell_nothing(told: Grid, hook: Webhook) -> None:
    told.chain.put(1, HASH, JobStatus.RUNNING, last_refuser=ACCOUNTS["other_provider"].address)
    await subscribe(told.customer, hook.url, EVENTS, 60)
    await told.other_provider.post_notice(1, "money-ending", "pay more")
    await a_round(told)
    assert hook.messages == []


async def test_urls_are_sealed_and_subscriptions_counted(told: Grid) -> None:
    for _ in range(5):
        await subscribe(told.customer, "https://example.org/secret", EVENTS, 60)
    with pytest.raises(ServiceError, match="has 5 subscriptions already"):
        await subscribe(told.customer, "https://example.org/secret", EVENTS, 60)
    async with told.context.database.read() as session:
        stored = await session.get_one(SubscriptionRecord, 1)
    assert b"example" not in stored.sealed


async def test_only_wallets_with_credits_subscribe(told: Grid) -> None:
    with pytest.raises(AccessDenied, match="has no job and too few credits"):
        await subscribe(told.other_provider, "https://example.org", EVENTS, 60)
    async with client_of(told.url, session_key()) as page:
        with pytest.raises(AccessDenied, match="the wallet itself must sign"):
            await subscribe(page, "https://example.org", EVENTS, 60)
    with pytest.raises(InputError):
        await subscribe(told.customer, "https://example.org", ["everything"], 60)


async def test_the_services_run_the_rounds_by_themselves(start: Start, hook: Webhook) -> None:
    grid = await start(notifier=NotifierSettings(every_s=0.05, private=True))
    await subscribe(grid.customer, hook.url, EVENTS, 60)
    grid.chain.put(1, HASH, JobStatus.FINISHED, ended_at=int(grid.clock()) + 1)
    async with asyncio.timeout(30):
        while not hook.messages:
            await asyncio.sleep(0.02)
    assert hook.messages[0]["event"] == "ended"
