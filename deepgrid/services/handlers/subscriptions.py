"""Subscriptions: a customer's wallet adds a webhook for messages about its jobs. Session keys may not do this."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Path
from pydantic import Field, StringConstraints
from sqlalchemy import func, select

from deepgrid.services.context import Services
from deepgrid.services.core import chain_reads
from deepgrid.services.handlers.authentication import SignedReader, SignedSmall
from deepgrid.services.messages import Message
from deepgrid.services.notify.notifier import forget_subscription
from deepgrid.services.notify.subscription_table import SubscriptionRecord
from deepgrid.services.refusal import Refusal

MOST_PER_CUSTOMER = 5
LONGEST_WAIT_MINUTES = 7 * 24 * 60

router = APIRouter()
Event = Literal["ended", "failed", "waiting", "money-ending"]
SubscriptionId = Annotated[int, Path(ge=1, lt=2**31)]


class SubscriptionRequest(Message):
    """A webhook and its events. `wait_minutes` is how long a job must wait before the webhook is notified."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = Field(repr=False)
    events: Annotated[list[Event], Field(min_length=1, max_length=4)]
    wait_minutes: Annotated[int, Field(ge=1, le=LONGEST_WAIT_MINUTES)] = 60


class Subscribed(Message):
    """The id of a new subscription, and the HMAC-SHA-256 key that signs its messages."""

    id: int
    key: str = Field(repr=False)


class Subscription(Message):
    """A subscription. Only the host of its URL is shown, because the rest may be a secret."""

    id: int
    host: str
    events: list[str]
    wait_minutes: int


class Subscriptions(Message):
    subscriptions: list[Subscription]


@router.post("/v1/subscriptions")
async def subscribe(request: SignedSmall, context: Services) -> Subscribed:
    """Add a webhook for the caller's jobs."""
    wanted = SubscriptionRequest.model_validate_json(request.body)
    if fault := context.targets.fault_of(wanted.url):
        raise Refusal(422, f"the webhook's URL {fault}")
    request.look_up()
    with chain_reads():
        earlier = await context.chain.jobs_by_customer(request.address)
        if not earlier and await context.chain.balance(request.address) < max(1, await context.minimum_wei()):
            raise Refusal(403, f"{request.address} has no job and too few credits")
    key = secrets.token_hex(32)
    async with context.database.write() as session:
        await request.accept(session)
        own = select(func.count()).where(SubscriptionRecord.customer == request.address)
        if (await session.scalar(own) or 0) >= MOST_PER_CUSTOMER:
            raise Refusal(429, f"{request.address} has {MOST_PER_CUSTOMER} subscriptions already")
        row = SubscriptionRecord(
            customer=request.address,
            sealed=context.vault.seal(json.dumps([wanted.url, key]).encode()),
            events=",".join(dict.fromkeys(wanted.events)),
            wait_minutes=wanted.wait_minutes,
            first=0,
            created_at=context.clock(),
        )
        session.add(row)
        await session.flush()
        return Subscribed(id=row.id, key=key)


@router.get("/v1/subscriptions")
async def subscriptions(request: SignedReader, context: Services) -> Subscriptions:
    """Return the caller's subscriptions."""
    request.look_up()
    await request.accept()
    async with context.database.read() as session:
        own = select(SubscriptionRecord).where(SubscriptionRecord.customer == request.address)
        rows = (await session.scalars(own.order_by(SubscriptionRecord.id))).all()
    return Subscriptions(
        subscriptions=[
            Subscription(
                id=row.id,
                host=urlsplit(json.loads(context.vault.unseal(row.sealed))[0]).hostname or "",
                events=row.events.split(","),
                wait_minutes=row.wait_minutes,
            )
            for row in rows
        ]
    )


@router.delete("/v1/subscriptions/{subscription_id}", status_code=204)
async def unsubscribe(subscription_id: SubscriptionId, request: SignedSmall, context: Services) -> None:
    """Remove one of the caller's subscriptions."""
    request.look_up()
    await request.accept()
    if not await forget_subscription(context, subscription_id, request.address):
        raise Refusal(404, f"there is no subscription {subscription_id} of {request.address}")
