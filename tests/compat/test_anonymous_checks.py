"""Checks of definitions without a signature never delay checks of signed uploads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from deepgrid.compat.compat_context import NICENESS, CompatLimits, CompatSettings
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import InputError, ServiceError
from deepgrid.services.admission import checks
from deepgrid.services.admission.checks import LARGE_NICENESS
from deepgrid.services.refusal import Refusal
from deepgrid.workflow import canonical
from tests.services.support import ACCOUNTS, Grid, Start, a_job, client_of
from tests.waiting import until


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Checks of anonymous definitions that never end by themselves. Records the niceness of each check that began."""
    began: list[int] = []
    go_on = threading.Event()

    def check(_script: str, *, niceness: int) -> None:
        began.append(niceness)
        if niceness == NICENESS:
            assert go_on.wait(120)
            raise InputError("the test is over")  # or the thread would continue in the next test

    monkeypatch.setattr(checks, "lint_script", lambda *_, **__: None)
    monkeypatch.setattr(checks, "check_grammar", check)  # every script has this check
    yield began
    go_on.set()


async def test_signed_uploads_keep_their_pace_while_many_anonymous_checks_hang(grid: Grid, stuck: list[int]) -> None:
    flood = [
        asyncio.create_task(store_anonymous(grid.compat, f"192.0.2.{n % 20}", canonical(a_job(f"echo {n}"))))
        for n in range(100)
    ]

    async def hangs() -> bool:
        return grid.compat.checks.queue.running == 1

    try:
        await until(hangs)
        async with asyncio.timeout(60):
            for number in range(20):
                await grid.customer.upload(a_job(f"echo signed {number}"))
            await asyncio.gather(*(grid.rival.upload(a_job(f"echo at once {n}")) for n in range(20)))
        assert stuck.count(NICENESS) == 1, "one check at a time"
        assert stuck.count(0) == 40, "signed uploads are checked at full priority"
        assert not any(task.done() and not task.exception() for task in flood), "no anonymous one was served before"
    finally:
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


async def test_large_signed_definitions_go_before_anonymous_ones(grid: Grid, stuck: list[int]) -> None:
    await grid.customer.upload(a_job("echo " + "x" * 5000))
    assert stuck == [LARGE_NICENESS]
    assert LARGE_NICENESS < NICENESS


async def test_waiting_anonymous_checks_are_bounded_per_address(start: Start, stuck: list[int]) -> None:
    grid = await start(compat=CompatSettings(limits=CompatLimits(checks_waiting_per_address=2, check_wait_s=1.0)))
    storing = [
        asyncio.create_task(store_anonymous(grid.compat, "192.0.2.1", canonical(a_job(f"echo {n}")))) for n in range(10)
    ]

    async def nine_are_refused() -> bool:
        return sum(task.done() for task in storing) == 9

    await until(nine_are_refused)
    refused = [error for task in storing if task.done() and isinstance(error := task.exception(), Refusal)]
    assert {(one.status, one.retry_after_s) for one in refused} == {(429, 2)}
    assert (len(refused), len(stuck)) == (9, 1)
    for task in storing:
        task.cancel()


async def test_verdicts_of_strangers_are_kept_apart(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(checks, "lint_script", lambda _part, *, niceness, **_: seen.append(niceness))
    for _ in range(2):
        await store_anonymous(grid.compat, "192.0.2.1", canonical(a_job()))
    await grid.customer.upload(a_job())
    assert seen == [NICENESS] * 2 + [0] * 2  # preamble and steps


async def test_a_fault_of_the_script_is_told(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "render", lambda *_: "#!/bin/bash\nif\n")
    with pytest.raises(InputError, match="not valid bash"):
        await store_anonymous(grid.compat, "192.0.2.1", canonical(a_job()))


async def test_an_upload_waits_for_a_check_that_takes_longer_than_one_request(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 uploads at once on a busy machine: the first check took longer than the client waited for one answer."""
    go_on, began = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> None:
        began.set()
        assert go_on.wait(60)

    monkeypatch.setattr(checks, "lint_script", slow)
    async with client_of(grid.url, ACCOUNTS["customer"], timeout_s=0.5) as client:
        uploads = [asyncio.create_task(client.upload(a_job())) for _ in range(5)]
        assert await asyncio.to_thread(began.wait, 30)
        asked = grid.chain.calls
        async with asyncio.timeout(60):
            while grid.chain.calls < asked + 10:  # each request asks for the signer's credits
                await asyncio.sleep(0.05)
        go_on.set()
        assert len({await upload for upload in uploads}) == 5


async def test_an_upload_ends_when_the_machine_stays_too_busy(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def never(part: str, **_: object) -> None:
        seen.append(part)
        if len(seen) < 2:
            raise ServiceError("shellcheck did not finish the batch script within 20 s")

    monkeypatch.setattr(checks, "lint_script", never)
    async with client_of(grid.url, ACCOUNTS["customer"], upload_patience_s=0) as impatient:
        with pytest.raises(ServiceError, match="did not finish") as caught:
            await impatient.upload(a_job())
        assert caught.value.transient
    await grid.customer.upload(a_job())
    assert seen[0] == seen[1], "a check that did not finish is no verdict"
    assert len(seen) == 3
