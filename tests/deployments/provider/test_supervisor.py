"""What the supervisor's process does before it leads, while it claims, and before it ends; Prefect is a stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.errors import ServiceError
from deepgrid.provider.session import ProviderSession, ProviderSettings
from deployments.provider import supervisor
from deployments.provider.carriers import CarrierSettings
from tests.waiting import until

Settings = SimpleNamespace


async def test_one_run_that_claims_waits_while_the_pool_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    started, unpaused = list[str](), asyncio.Event()

    async def run(deployment: str, _: object) -> bool:
        started.append(deployment)
        return await unpaused.wait()

    monkeypatch.setattr(supervisor, "run_to_completion", run)
    monkeypatch.setattr(supervisor, "CLAIM_RETRY_S", 0.001)
    one = supervisor.Supervisor(cast(ProviderSession, Settings(settings=Settings(cluster="alpha"))), CarrierSettings())
    one._claimable = 1
    claiming = asyncio.create_task(one._claim())
    await until(lambda: bool(started))
    await asyncio.sleep(0.1)
    assert started == ["claim_jobs/alpha"], "many retries fit into this time"
    unpaused.set()
    await until(lambda: len(started) > 1)
    claiming.cancel()


@pytest.mark.parametrize("answers", [["old", "new", "new"], ["old", None]])
async def test_a_standby_leads_with_the_settings_of_that_time(
    answers: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, led = list[str](), list[str]()

    async def read(_: str) -> ProviderSettings:
        if (answer := answers.pop(0)) is None:
            raise ServiceError("Prefect does not answer.")
        return cast(ProviderSettings, Settings(cluster="alpha", name=answer))

    async def elected() -> None:
        return None

    async def open_session(stack: AsyncExitStack, settings: Any) -> Any:
        stack.callback(closed.append, settings.name)
        return Settings(settings=settings, leader=Settings(elected=elected))

    @asynccontextmanager
    async def no_page(_: object) -> AsyncIterator[None]:
        yield

    async def lead(session: Any, _: CarrierSettings) -> None:
        led.append(session.settings.name)

    newest = answers[-1] or "old"
    for name, stand_in in (("provider_settings", read), ("_open", open_session), ("health_and_metrics", no_page)):
        monkeypatch.setattr(supervisor, name, stand_in)
    monkeypatch.setattr(supervisor, "_lead", lead)
    await supervisor.serve_provider("alpha")
    assert (led, closed[-1]) == ([newest], newest)
    assert len(closed) == (1 if newest == "old" else 2), "the session with old settings gives up the lead"


async def test_a_drained_supervisor_waits_for_its_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = asyncio.Event()

    async def nothing(*_: object) -> None:
        return None

    async def until_sent() -> None:
        await sent.wait()

    monkeypatch.setattr(supervisor, "until_it_answers", nothing)
    monkeypatch.setattr(supervisor, "_until_drained", nothing)
    receipts = Settings(until_sent=until_sent, waiting=0)
    session = cast(ProviderSession, Settings(logs=Settings(until_idle=nothing), receipts=receipts))
    monkeypatch.setattr(supervisor, "AsyncClientContext", Settings(get_or_create=nullcontext))
    ending = asyncio.create_task(supervisor.until_drained(session, lambda: True))
    done, _ = await asyncio.wait([ending], timeout=0.2)
    assert not done
    sent.set()
    await ending
