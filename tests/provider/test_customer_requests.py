"""Cancel requests and top-ups reach claimed jobs, with and without a carrier. The chain and Slurm are real."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.chain.node.values import Queues
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.actions import Action, Awaited, ExtendLimit, ReportRunning, Wait
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.claims import customer_requests
from deepgrid.provider.claims.carrier import Carrier, carry
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.submit.protocol import SubmitRequest
from tests.chain.grid import CREDIT
from tests.provider.scene import Scene
from tests.slurm.support import bash

WITHIN_S = 120
MINUTES = 100  # minutes that the credits of a claimed job buy
REQUEST = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=100, gpus=0, time_limit_minutes=MINUTES)
SCRIPT = bash("sleep 600")


async def top_up(scene: Scene, key: JobKey, minutes: int = 20) -> None:
    await scene.customer.top_up(key.job_id, minutes * CREDIT, approve_first=minutes * CREDIT)


async def limit_at_slurm(scene: Scene, key: JobKey) -> int | None:
    return (await scene.session.cluster.queue(key)).claims[key].limit_minutes


async def carry_until_it_runs(carrier: Carrier) -> list[Action]:
    """Act until only the wait for the job's end remains. Returns the actions."""
    done: list[Action] = []
    async with asyncio.timeout(WITHIN_S):
        while (action := decide(await carrier.observe())) != Wait(Awaited.END):
            await carrier.act(action)
            done.append(action)
    return [action for action in done if not isinstance(action, Wait | ReportRunning)]


async def test_a_carrier_extends_a_job_once_and_its_successor_does_not_repeat_it(scene: Scene, key: JobKey) -> None:
    async with carry(scene.session, key) as carrier:
        await carrier.submit(SCRIPT)
        assert await carry_until_it_runs(carrier) == []
        await top_up(scene, key)
        assert await carry_until_it_runs(carrier) == [ExtendLimit(MINUTES + 20)]
    assert await limit_at_slurm(scene, key) == MINUTES + 20
    async with carry(scene.session, key) as successor:
        assert await carry_until_it_runs(successor) == []


async def test_a_top_up_without_a_carrier_is_done_by_the_next_carrier(scene: Scene, key: JobKey) -> None:
    await scene.session.cluster.submit(key, SCRIPT, REQUEST)
    await top_up(scene, key)
    async with carry(scene.session, key) as carrier:
        assert await carry_until_it_runs(carrier) == [ExtendLimit(MINUTES + 20)]
    assert await limit_at_slurm(scene, key) == MINUTES + 20


async def test_a_site_that_refuses_an_extension_is_asked_once_and_the_customer_notified(
    scene: Scene, key: JobKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[int, str, str]] = []

    async def refuse(*_: object) -> bool:
        raise SlurmError("Slurm refused: slurm_update error: Access/permission denied.")

    async def explain(job_id: int, kind: str, text: str) -> None:
        said.append((job_id, kind, text))

    monkeypatch.setattr(scene.session.cluster, "set_time_limit", refuse)
    monkeypatch.setattr(scene.session, "explain", explain)
    async with carry(scene.session, key) as carrier:
        await carrier.submit(SCRIPT)
        await top_up(scene, key)
        assert await carry_until_it_runs(carrier) == [ExtendLimit(MINUTES + 20)]
        await top_up(scene, key)
        assert await carry_until_it_runs(carrier) == []
    [(job_id, kind, text)] = said
    assert (job_id, kind) == (key.job_id, "top-up")
    assert "denied" in text and "The job continues up to its current limit" in text


async def test_a_job_without_a_carrier_is_extended_directly(scene: Scene, key: JobKey) -> None:
    session = scene.session
    await top_up(scene, key)
    [job] = await customer_requests.read_top_ups(session)
    assert not customer_requests.wake_carrier(session, job)
    await customer_requests.extend_without_carrier(session, job)  # before the job is in Slurm
    await session.cluster.submit(key, SCRIPT, REQUEST)
    await customer_requests.extend_without_carrier(session, job)
    assert await limit_at_slurm(scene, key) == MINUTES + 20


async def test_an_emptied_queue_loses_no_cancel_request(scene: Scene, key: JobKey) -> None:
    session = scene.session
    await scene.customer.cancel_job(key.job_id)
    assert await session.chain.queues(session.address) == Queues(0, 1, 0)
    requested = await customer_requests.next_cancel_request(session)
    assert requested is not None and requested.id == key.job_id
    assert await customer_requests.next_cancel_request(session) is None
    assert [job.id for job in await customer_requests.read_cancel_requests(session)] == [key.job_id]
    await session.writer.refuse_job(key.job_id)
    assert await customer_requests.read_cancel_requests(session) == []
    assert not customer_requests.is_at_cluster(session, await session.chain.job(key.job_id))


async def test_one_queue_entry_stands_for_all_top_ups_of_a_job(scene: Scene, key: JobKey) -> None:
    session = scene.session
    assert await customer_requests.read_top_ups(session) == []
    for _ in range(2):
        await top_up(scene, key)
    job = await customer_requests.next_top_up(session)
    assert job is not None and (job.id, job.granted_minutes) == (key.job_id, MINUTES + 40)
    assert await customer_requests.next_top_up(session) is None
    assert await customer_requests.read_top_ups(session) == []


async def test_the_carrier_of_the_job_is_woken(scene: Scene, key: JobKey) -> None:
    session: ProviderSession = scene.session
    job = await session.chain.job(key.job_id)
    assert not customer_requests.wake_carrier(session, job)
    async with carry(session, key):
        waiting = asyncio.create_task(session.wakeups.wait(key.job_id, 10 * WITHIN_S))
        await asyncio.sleep(0)
        assert customer_requests.wake_carrier(session, job)
        await asyncio.wait_for(waiting, WITHIN_S)
