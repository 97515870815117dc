"""Webhooks that lead into the operator's network, and messages about the jobs of others."""

from __future__ import annotations

import socket
from typing import Any

import httpcore
import pytest

from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission.webhook_targets import PublicAddresses, Targets
from deepgrid.services.client.subscriptions_client import subscribe
from deepgrid.services.notify.notifier import EVENTS, NotifierSettings, deliver_due, note_due
from tests.services.support import Grid, Start
from tests.services.webhook_support import webhook

PRIVATE = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0")


@pytest.mark.attack(
    "webhooks at addresses of the operator's network: by number, by name, by a name that changes its address",
    attacker="a customer", gain="nothing", defence="each connection goes to an address that was checked to be public",
)  # fmt: skip
async def test_no_webhook_leads_into_the_operators_network(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, targets = PublicAddresses(), Targets()
    for address in PRIVATE:

        def resolve(*_: Any, where: str = address, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 443)) for one in ("8.8.8.8", where)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(httpcore.ConnectError, match="private"):
            await backend.address_of("rebound.example", 443)
        assert not await targets.post("https://rebound.example/", "key", b"{}")
    await targets.close()


@pytest.mark.attack(
    "webhooks by http, with passwords, by other schemes, on this machine", attacker="a customer",
    gain="nothing", defence="only https without a user name is a target",
)  # fmt: skip
async def test_odd_urls_are_no_webhooks(grid: Grid) -> None:
    odd = (
        "http://example.org",
        "http://127.0.0.1:1/",
        "https://u:p@example.org/",
        "file:///etc/passwd",
        "https://",
        "x",
    )
    for url in (*odd, "gopher://example.org/", "https://example.org/" + "a" * 990):
        with pytest.raises(InputError):
            await subscribe(grid.customer, url, EVENTS, 60)


@pytest.mark.attack(
    "a webhook that redirects into the operator's network", attacker="a customer",
    gain="nothing", defence="redirects are not followed",
)  # fmt: skip
async def test_redirects_are_not_followed(start: Start) -> None:
    grid = await start(notifier=NotifierSettings(every_s=10_000, private=True))
    async with webhook() as inner, webhook() as outer:
        outer.redirect = inner.url
        await subscribe(grid.customer, outer.url, EVENTS, 60)
        grid.chain.put(1, "0" * 64, JobStatus.FINISHED, ended_at=int(grid.clock()) + 1)
        await note_due(grid.context)
        await deliver_due(grid.context, grid.context.targets)
        assert inner.requests == []


@pytest.mark.attack(
    "a subscription for the jobs of another customer", attacker="another customer",
    gain="nothing", defence="a subscription is the signer's, and tells of the signer's jobs",
)  # fmt: skip
async def test_nothing_is_told_of_the_jobs_of_others(start: Start) -> None:
    grid = await start(notifier=NotifierSettings(every_s=10_000, private=True))
    async with webhook() as hook:
        await subscribe(grid.rival, hook.url, EVENTS, 60)
        grid.chain.put(1, "0" * 64, JobStatus.FAILED, ended_at=int(grid.clock()) + 1)
        await note_due(grid.context)
        await deliver_due(grid.context, grid.context.targets)
        assert hook.requests == []
