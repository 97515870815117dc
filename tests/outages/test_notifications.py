"""Prefect's automations notify a person, on a whole grid: a real condition, a real server, a real receiver."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.events.schemas.automations import Automation
from prefect.states import Failed, Scheduled

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError
from deployments.onemachine.grid import LocalGrid
from orchestration.automations import compare_automations, deploy_automations, remove_automations, silent_pools
from orchestration.grid_events import BOOKS_DIFFER, DEGRADED, Conditions
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import run_now

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1200), pytest.mark.usefixtures("prefect_api")]

BLOCK = "custom-webhook/test-notifications"
CLUSTER = "beta"
SOON = timedelta(seconds=100)


class Receiver:
    """The notifications that arrived: subject and text."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    async def take(self, request: web.Request) -> web.Response:
        message = json.loads(await request.text())
        self.got.append((message["subject"], message["body"]))
        return web.Response()

    async def until(self, subject: str, words: str) -> None:
        """Wait for a notification of this kind with these words."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [body for name, body in self.got if name == subject and words in body]):
            assert time.monotonic() < deadline, self.got
            await asyncio.sleep(0.5)
        assert "See docs/how-to/notifications.md." in found[0]


@pytest.fixture
async def receiver(prefect_api: None) -> AsyncIterator[Receiver]:
    """A web server that a notification block of the grid's Prefect names."""
    receiver, pages = Receiver(), web.Application()
    pages.router.add_post("/", receiver.take)
    runner = web.AppRunner(pages)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    (address,) = runner.addresses
    block = CustomWebhookNotificationBlock(
        name="test", url=f"http://127.0.0.1:{address[1]}/", allow_private_urls=True,
        json_data={"subject": "{{subject}}", "body": "{{body}}"},
    )  # fmt: skip
    await block.asave(BLOCK.partition("/")[2], overwrite=True)
    yield receiver
    await remove_automations()
    await runner.cleanup()


async def test_each_condition_notifies_once(customer: Customer, receiver: Receiver) -> None:
    grid = customer.grid
    assert set((await compare_automations(BLOCK)).values()) == {"new"}
    made = await deploy_automations(BLOCK, SOON)
    assert set(made.values()) == {"new"} and len(made) == 6
    assert set((await deploy_automations(BLOCK, SOON)).values()) == {"unchanged"}
    books, unread, silent, gas, degraded, over = made

    grid.table.stop(f"supervisor-{CLUSTER}")
    try:
        failed = await run_now(grid, "reconcile_billing/alpha", cluster="nobody")
        assert failed["state"]["type"] == "FAILED"
        await receiver.until(unread, failed["state"]["message"][:40])
        await find_a_difference("reconcile_billing/alpha")
        await receiver.until(books, "job 7 (minutes)")
        grid.table.stop("worker-processes")
        Conditions("provider", CLUSTER).tell(DEGRADED, "Slurm has not answered for 200 s.")
        await receiver.until(degraded, f"provider {CLUSTER}: Slurm has not answered for 200 s.")
        await receiver.until(silent, f"provider-{CLUSTER}")
        await receiver.until(silent, "work pool processes")
        assert {"processes", f"provider-{CLUSTER}"} <= set(await silent_pools())
    finally:
        await asyncio.to_thread(grid.start, "worker-processes")
        address = Wallet.load(grid.keys.file(CLUSTER)).address
        before = await balance(grid, address)
        await set_balance(grid, address, 1)
        await asyncio.to_thread(grid.start, f"supervisor-{CLUSTER}")
    await receiver.until(gas, f"provider {CLUSTER}: The gas money lasts for about 0 jobs.")
    await set_balance(grid, address, before)
    await receiver.until(over, f"Over now. provider {CLUSTER}: The gas money lasts for about 0 jobs.")
    await switch_off(silent)
    changed = await deploy_automations(BLOCK, 2 * SOON)
    assert changed == dict.fromkeys(made, "unchanged") | {silent: "changed"}
    assert not (await automation(silent)).enabled
    assert await compare_automations(BLOCK) == changed  # with the usual time of silence
    with pytest.raises(ConfigurationError, match="Prefect has no block custom-webhook/missing"):
        await deploy_automations("custom-webhook/missing")
    assert set(await remove_automations()) == set(made)
    assert len(set(receiver.got)) == len(receiver.got)  # each one once


async def find_a_difference(deployment: str) -> None:
    """Let a run of the deployment end as one that found a difference."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(deployment)
        later = Scheduled(scheduled_time=datetime.now(UTC) + timedelta(days=1))
        run = await client.create_flow_run_from_deployment(found.id, state=later)
        differs: State[None] = Failed(name=BOOKS_DIFFER, message="1 of 9 jobs differs: job 7 (minutes).")
        await client.set_flow_run_state(run.id, differs, force=True)


async def automation(name: str) -> Automation:
    async with get_client() as client:
        (found,) = await client.read_automations_by_name(name)
    return found


async def switch_off(name: str) -> None:
    """Disable an automation, as a person does in Prefect's UI."""
    found = await automation(name)
    async with get_client() as client:
        await client.pause_automation(found.id)


async def balance(grid: LocalGrid, address: str) -> int:
    return int(await _call(grid, "eth_getBalance", address, "latest"), 16)


async def set_balance(grid: LocalGrid, address: str, wei: int) -> None:
    await _call(grid, "anvil_setBalance", address, hex(wei))


async def _call(grid: LocalGrid, method: str, *params: object) -> str:
    node = grid.anvil.private()
    try:
        return str((await node.batch([(method, list(params))]))[0])
    finally:
        await node.close()
