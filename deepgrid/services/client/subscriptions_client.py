"""The part of the services' client for messages about own jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from deepgrid.services.client import answers
from deepgrid.services.client.services_client import ServicesClient


class NewSubscription(BaseModel):
    """The number of a subscription, and the key that signs its messages."""

    id: int
    key: str


class KnownSubscription(BaseModel):
    """A subscription as the services show it."""

    id: int
    host: str
    events: list[str]
    wait_minutes: int


class _All(BaseModel):
    subscriptions: list[KnownSubscription]


async def subscribe(services: ServicesClient, url: str, events: Sequence[str], wait_minutes: int) -> NewSubscription:
    """Add a webhook. Raises InputError for a URL that the services refuse."""
    body = TypeAdapter(dict[str, object]).dump_json({"url": url, "events": list(events), "wait_minutes": wait_minutes})
    return _parse(NewSubscription, await services.send("POST", "/v1/subscriptions", body))


async def subscriptions(services: ServicesClient) -> list[KnownSubscription]:
    """Return this account's subscriptions."""
    return _parse(_All, await services.send("GET", "/v1/subscriptions")).subscriptions


async def unsubscribe(services: ServicesClient, subscription_id: int) -> None:
    """Remove an own subscription. Raises NotFound."""
    await services.send("DELETE", f"/v1/subscriptions/{subscription_id}")


T = TypeVar("T", bound=BaseModel)


def _parse(kind: type[T], content: bytes) -> T:
    try:
        return kind.model_validate_json(content)
    except ValidationError:
        raise answers.nonsense() from None
