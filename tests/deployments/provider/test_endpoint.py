"""The endpoint for health and metrics, on a real chain and a real cluster, read with Prometheus' own parser."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from prometheus_client.parser import text_string_to_metric_families

from deepgrid.chain.client import Chain
from deepgrid.errors import ChainError, ContractError
from deepgrid.lifecycle.actions import Action, Submit
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import Carrier, carry
from deepgrid.provider.session import ProviderSession, follow_jobs, provider_session
from deployments.provider.endpoint import EndpointSettings, health_and_metrics
from orchestration import grid_events
from tests.chain.grid import Grid
from tests.chaos.lagging import LaggingNode
from tests.provider.scene import Scene
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key
from tests.waiting import until as waited

QUICK = EndpointSettings(check_every_s=0.2)
Figures = dict[tuple[str, str], float]
CARRIED, UNKNOWN = ("deepgrid_spool_records", "carried"), ("deepgrid_spool_records", "unknown")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def stop(box: Box) -> Iterator[Callable[[str], None]]:
    """Stop a daemon. All daemons run again after the test."""
    yield box.stop
    box.start()


@pytest.fixture(autouse=True)
def without_prefect() -> Iterator[None]:
    """No Prefect server answers, and none is started."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        yield


@asynccontextmanager
async def served(
    session: ProviderSession, port: int, settings: EndpointSettings = QUICK
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the endpoint of a session that follows its chain."""

    async def follow() -> None:
        async for _ in follow_jobs(session):
            pass

    session.settings = dataclasses.replace(session.settings, metrics_port=port)
    following = asyncio.create_task(follow())
    try:
        async with (
            health_and_metrics(session, settings),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=WAIT_S) as client,
        ):
            yield client
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def figures(client: httpx.AsyncClient) -> Figures:
    """Return all samples by name and label value. None occurs twice."""
    answer = (await client.get("/metrics")).raise_for_status()
    assert answer.headers["content-type"].startswith("text/plain")
    found: Figures = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            name = (sample.name, ",".join(sample.labels.values()))
            assert name not in found
            found[name] = sample.value
    return found


async def until(client: httpx.AsyncClient, reached: Callable[[Figures], bool]) -> Figures:
    deadline = time.monotonic() + WAIT_S
    while not reached(found := await figures(client)):
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.1)
    return found


async def until_health(client: httpx.AsyncClient, status: int, reason: str = "") -> dict[str, object]:
    """Return the content of /health as soon as it has this status and contains this reason."""
    deadline = time.monotonic() + WAIT_S
    while (answer := await client.get("/health")).status_code != status or reason not in answer.text:
        assert time.monotonic() < deadline, answer.text
        await asyncio.sleep(0.1)
    return dict(answer.json())


async def test_a_jobs_life_is_counted(scene: Scene, key: JobKey, port: int, caplog: pytest.LogCaptureFixture) -> None:
    session = scene.session
    async with served(session, port) as client:
        found = await until(client, lambda found: found["deepgrid_jobs", "scheduled"] == 1)
        assert (found["deepgrid_leader", ""], found["deepgrid_leader_epoch", ""]) == (0, 0)
        await session.leader.elected()
        found = await figures(client)
        assert (found["deepgrid_leader", ""], found["deepgrid_leader_epoch", ""]) == (1, 1)
        assert found["deepgrid_claim_to_sbatch_seconds_count", ""] == 0
        async with carry(session, key) as carrier:
            await drive(carrier.observe, lambda action: _act(carrier, action))
            found = await until(client, lambda found: found.get(CARRIED) == 1)
            assert (found["deepgrid_carriers", ""], found["deepgrid_slurm_jobs", "ended"]) == (1, 1)
            await carrier.finish()
        found = await until(client, lambda found: found.get(CARRIED) == found["deepgrid_jobs", "running"] == 0)
        assert (await session.chain.job(key.job_id)).status is JobStatus.FINISHED
        for name in ("deepgrid_claim_to_sbatch_seconds_count", "deepgrid_end_to_settled_seconds_count"):
            assert found[name, ""] == 1
        assert 0 < found["deepgrid_end_to_settled_seconds_sum", ""] < WAIT_S
        assert found["deepgrid_settled_jobs_total", "finished"] == 1
        assert found["deepgrid_carriers", ""] == found["deepgrid_jobs", "running"] == 0
        assert found["deepgrid_ssh_commands_total", ""] > 5
        assert found["deepgrid_rpc_calls_total", ""] > 20
        assert found["deepgrid_ssh_errors_total", "refused"] == found["deepgrid_rpc_errors_total", "refused"] == 0
        gas = await session.chain.gas_money(session.address)
        assert found["deepgrid_gas_coins", ""] == pytest.approx(gas / 10**18)
        assert found["deepgrid_block", ""] > 0
        for need in ("login", "slurm", "chain", "blocks"):
            assert found["deepgrid_last_answer_timestamp_seconds", need] == pytest.approx(time.time(), abs=WAIT_S)
        assert found["process_resident_memory_bytes", ""] > 10**6
        assert found["deepgrid_healthy", ""] == 1

        caplog.set_level(logging.WARNING)
        async with provider_session(session.settings) as other, health_and_metrics(other):
            assert f"127.0.0.1:{port}" in caplog.text  # the port is in use, and the supervisor continues
            assert await other.chain.head()


async def _act(carrier: Carrier, action: Action) -> None:
    """Do the action, but submit the test's own script."""
    await (carrier.submit(bash("true")) if isinstance(action, Submit) else carrier.act(action))


async def test_a_completion_record_without_a_carrier_is_counted(scene: Scene, box: Box, port: int) -> None:
    session, key = scene.session, new_key()
    async with served(session, port) as client:
        before = (await until(client, lambda found: UNKNOWN in found))[UNKNOWN]
        await session.cluster.submit(key, bash("true"), SMALL)
        await ended(session.monitor, key)
        await until(client, lambda found: found.get(UNKNOWN) == before + 1)
        await session.cluster.acknowledge(key)


async def test_health_reports_a_login_node_that_stops_answering_with_the_reason(
    scene: Scene, port: int, stop: Callable[[str], None], box: Box
) -> None:
    scene.session.metrics.liveness.patience_s = 3.0
    async with served(scene.session, port) as client:
        said = await until_health(client, 200)
        assert (said["reasons"], said["prefect"], said["provider"]) == ([], False, scene.session.address)
        stop("sshd")
        said = await until_health(client, 503, "The login node has not answered for")
        assert "cannot be reached" in str(said["reasons"])
        found = await figures(client)
        assert found["deepgrid_healthy", ""] == 0
        assert found["deepgrid_ssh_errors_total", "unreachable"] > 0
        box.start()
        await until_health(client, 200)


async def test_a_lost_login_node_is_told_though_nobody_can_lead_without_it(
    scene: Scene, port: int, stop: Callable[[str], None], box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(grid_events, "emit_event", lambda event, **_: told.append(event))
    scene.session.metrics.liveness.patience_s = 3.0
    async with served(scene.session, port) as client:
        await until_health(client, 200)
        stop("sshd")
        await waited(lambda: told == [grid_events.DEGRADED])
        assert not scene.session.leader.leads
        box.start()
        await waited(lambda: told == [grid_events.DEGRADED, grid_events.DEGRADED + grid_events.OVER])


async def test_an_unreachable_node_is_counted_and_a_revert_is_no_error(scene: Scene, grid: Grid, port: int) -> None:
    session, node = scene.session, LaggingNode(grid.anvil.url, 0)
    through = session.chain.book.model_copy(update={"rpc_url": f"http://127.0.0.1:{node.port}"})
    async with served(session, port) as client, await Chain.connect(through, session.metrics.asked) as chain:
        with pytest.raises(ContractError):  # the provider has no such job
            await session.writer.refuse_job(1)
        assert (await figures(client))["deepgrid_rpc_errors_total", "refused"] == 0
        node.close()
        with pytest.raises(ChainError):
            await chain.head()
        assert (await figures(client))["deepgrid_rpc_errors_total", "unreachable"] > 0
