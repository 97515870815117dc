"""Webhooks that lead into the operator's network, and messages about the jobs of others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import httpcore
import pytest

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission.webhook_targets import Answer, PublicAddresses, Targets
from deepgrid.services.client.subscriptions_client import NewSubscription, subscribe, unsubscribe
from deepgrid.services.notify.notifier import EVENTS, EndedJobs, NotifierSettings, deliver_due, note_due
from tests.services.support import ACCOUNTS, Grid, Start
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
        assert await targets.post("https://rebound.example/", "key", b"{}") is Answer.REFUSED
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


@pytest.mark.attack(
    "5 webhooks at a host that accepts and never answers, for 2,000 jobs that it requests and cancels at once",
    attacker="a customer", gain="5 of 20 slots for the time of one answer, six times",
    defence="subscriptions have turns; a silent target postpones all its messages together",
)  # fmt: skip
async def test_a_silent_webhook_delays_no_other(start: Start) -> None:
    grid = await start(notifier=NotifierSettings(every_s=10_000, private=True))
    asked = 0
    grid.clock.stop()

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()

    targets = Targets(private=True, timeout_s=2.0)
    server = await asyncio.start_server(never, "127.0.0.1", 0)
    silent = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, webhook() as hook:
        for _ in range(5):
            await subscribe(grid.customer, silent, EVENTS, 60)
        await subscribe(grid.rival, hook.url, EVENTS, 60)
        ended = int(grid.clock()) + 1
        for job_id in range(1, 61):  # more than a round takes, for 5 subscriptions
            grid.chain.put(job_id, "0" * 64, JobStatus.CANCELLED, ended_at=ended)
        rival = {"customer": ACCOUNTS["rival"].address, "ended_at": ended}
        grid.chain.put(401, "0" * 64, JobStatus.FINISHED, **rival)
        await note_due(grid.context)
        await deliver_due(grid.context, targets)
        assert [one["job"] for one in hook.messages] == [401]
        grid.chain.put(402, "0" * 64, JobStatus.FINISHED, **rival)
        await note_due(grid.context)
        await deliver_due(grid.context, targets)
        assert ([one["job"] for one in hook.messages], asked) == ([401, 402], 5)
        for _ in range(6):  # it is given up as a whole
            grid.clock.ahead_s += 15_000
            await deliver_due(grid.context, targets)
        assert asked == 5 * 6
    await targets.close()


@pytest.mark.attack(
    "deletes its subscription during a round, so that the next customer gets its number and its messages",
    attacker="a customer", gain="nothing", defence="messages are noted for a number and the subscription that had it",
)  # fmt: skip
async def test_a_number_that_is_given_again_gets_no_message_of_before(start: Start) -> None:
    grid = await start(notifier=NotifierSettings(every_s=10_000, private=True))
    grid.chain.put(1, "0" * 64, JobStatus.FAILED, ended_at=int(grid.clock()) + 1)
    async with webhook() as first, webhook() as second:
        made = await subscribe(grid.customer, first.url, EVENTS, 60)
        read = grid.chain.jobs
        meanwhile: list[NewSubscription] = []

        async def jobs(job_ids: Sequence[int]) -> list[Job]:
            if not meanwhile:
                await unsubscribe(grid.customer, made.id)
                meanwhile.append(await subscribe(grid.rival, second.url, EVENTS, 60))
            return await read(job_ids)

        grid.chain.jobs = jobs  # type: ignore[method-assign]
        await note_due(grid.context)
        await deliver_due(grid.context, grid.context.targets)
        assert meanwhile[0].id == made.id
        assert (first.requests, second.requests) == ([], [])


@pytest.mark.attack(
    "5 webhooks for 400 ended jobs behind one without a fitting cluster, and a job without data",
    attacker="a customer", gain="one read of its hot jobs per round",
    defence="a customer's jobs are read once per round, ended ones never again; a failure is one customer's",
)  # fmt: skip
async def test_rounds_read_hot_jobs_only_and_fail_for_one_customer_only(start: Start) -> None:
    """Each round once read all jobs from the oldest hot one on, for each subscription."""
    grid = await start(notifier=NotifierSettings(every_s=10_000, private=True))
    grid.clock.stop()
    read, asked = grid.chain.jobs, list[int]()

    async def jobs(job_ids: Sequence[int]) -> list[Job]:
        asked.extend(job_ids)
        return await read(job_ids)

    grid.chain.jobs = jobs  # type: ignore[method-assign]
    ended: dict[str, EndedJobs] = {}
    async with webhook() as hook, webhook() as other:
        for _ in range(4):
            await subscribe(grid.customer, hook.url, ["ended"], 60)
        await subscribe(grid.rival, other.url, ["ended"], 60)
        grid.chain.put(1, "0" * 64, JobStatus.PENDING)
        for job_id in range(2, 402):
            grid.chain.put(job_id, "0" * 64, JobStatus.CANCELLED, ended_at=int(grid.clock()) - 10)
        await note_due(grid.context, ended)
        assert asked == list(range(1, 402)), "once for all subscriptions"
        grid.clock.ahead_s += 20
        await subscribe(grid.customer, hook.url, ["ended"], 60)
        await note_due(grid.context, ended)
        assert asked[401:] == [1], "the new one is not told of ends before it"
        grid.chain.put(402, "0" * 64, JobStatus.FINISHED, ended_at=int(grid.clock()) + 1)
        await note_due(grid.context, ended)
        await deliver_due(grid.context, grid.context.targets)
        assert [one["job"] for one in hook.messages] == [402] * 5
        rival = {"customer": ACCOUNTS["rival"].address, "ended_at": int(grid.clock())}
        grid.chain.put(404, "0" * 64, JobStatus.FINISHED, **rival)
        listed = grid.chain.jobs_by_customer

        async def with_a_missing_one(customer: str, first: int = 0) -> list[int]:
            found = await listed(customer, first)
            return found if customer == rival["customer"] else [*found, 999]

        grid.chain.jobs_by_customer = with_a_missing_one  # type: ignore[method-assign]
        await note_due(grid.context, ended)
        await deliver_due(grid.context, grid.context.targets)
        assert [one["job"] for one in other.messages] == [404]
