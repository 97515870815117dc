"""Customers who send what is expensive to check, and those who wait beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.errors import AccessDenied, InputError, ServiceError
from deepgrid.services.admission import Limits, checks
from deepgrid.services.database import Definition as StoredDefinition
from deepgrid.services.script_check import CheckLimits, check_script
from deepgrid.workflow import Definition, Step, StepRun
from deepgrid.workflow.models import ContainerRun
from tests.attacks.http_support import UPLOAD, UPLOAD_BODY, ask, person, rows
from tests.services.support import ACCOUNTS, Start, a_job, client_of, rich_chain, starting

CREDIT_WEI = 10**18


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with starting(tmp_path) as start_one:
        yield start_one


def expensive(steps: int, name: str = "x") -> Definition:
    """A definition of so many container steps."""
    step = Step(run=StepRun(command=f"echo {name}", container=ContainerRun(image="a")))
    return a_job().model_copy(update={"steps": (step,) * steps})


@pytest.mark.attack(
    "a definition of 1,000 container steps, again and again", attacker="a customer", gain="some rendering",
    defence="a limit on what the steps become, judged before any check; verdicts are kept",
)  # fmt: skip
async def test_what_is_too_expensive_is_not_checked(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(checks, "check_script", lambda script, **_: checked.append(script))
    grid = await start()
    for _ in range(5):
        with pytest.raises(InputError, match="use fewer steps"):
            await grid.customer.upload(expensive(1000))
    assert [len(script.encode()) < 512 * 1024 for script in checked] in ([], [True])


@pytest.mark.attack(
    "the most expensive definitions that are taken, 10 at once", attacker="a customer",
    gain="one check at a time; their own uploads wait", defence="a turn for each uploader, and a slot for small ones",
)  # fmt: skip
async def test_expensive_uploads_hold_up_nobody_else(start: Start) -> None:
    grid = await start()
    flood = [asyncio.create_task(grid.customer.upload(expensive(120, f"n{n}"))) for n in range(10)]
    try:
        async with asyncio.timeout(60):
            while not grid.context.checks.running:
                await asyncio.sleep(0.01)
        for number in range(3):
            await grid.rival.upload(a_job(f"echo {number}"))
            assert grid.context.checks.running <= 2
        assert not all(task.done() for task in flood), "the other one was not served first"
    finally:
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


@pytest.mark.attack(
    "more uploads than may wait", attacker="a customer", gain="64 that wait, and the others are told when to come back",
    defence="a bound on what waits for each uploader, and on how long",
)  # fmt: skip
async def test_what_waits_is_bounded_and_told_to_come_back(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "check_script", lambda _script, **_: time.sleep(0.3))
    grid = await start(limits=Limits(checks_waiting_per_uploader=2, check_wait_s=0.5))
    async with client_of(grid.url, ACCOUNTS["customer"]) as patient:
        impatient = client_of(grid.url, ACCOUNTS["customer"], upload_patience_s=0)
        async with impatient:
            asked = [impatient.upload(a_job(f"echo {n}")) for n in range(12)]
            found = await asyncio.gather(*asked, return_exceptions=True)
            refused = [error for error in found if isinstance(error, ServiceError)]
            assert refused
            assert all(error.transient and "try again" in str(error) for error in refused)
        async with asyncio.timeout(120):
            hashes = await asyncio.gather(*(patient.upload(a_job(f"echo more {n}")) for n in range(12)))
        assert len(set(hashes)) == 12, "a client that waits as told loses nothing"


@pytest.mark.attack(
    "the same definition 50 times, under other names", attacker="a customer", gain="one check",
    defence="verdicts are kept by what was rendered",
)  # fmt: skip
async def test_what_was_checked_is_not_checked_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(checks, "check_script", lambda script, **_: seen.append(script))
    grid = await start()
    hashes = await asyncio.gather(*(grid.customer.upload(a_job()) for _ in range(50)))
    assert len(set(hashes)) == 50
    assert len(seen) == 1
    await grid.rival.upload(a_job().model_copy(update={"enable_logging": True}))
    assert len(seen) == 1


@pytest.mark.attack(
    "a script that a checker never finishes", attacker="a customer", gain="10 s of one core, once",
    defence="a bound on processor time and on time; the verdict is kept",
)  # fmt: skip
async def test_a_check_without_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "shellcheck"
    endless.write_text("#!/bin/bash\nwhile :; do :; done\n")
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    quick = CheckLimits(processor_s=1)
    with pytest.raises(InputError, match="use fewer steps"):
        await asyncio.to_thread(check_script, "#!/bin/bash\ntrue\n", limits=quick)
    endless.write_text("#!/bin/bash\nread -r -t 100 <> <(:)\n")  # without processor time
    impatient = CheckLimits(processor_s=1, within_s=0.5)
    with pytest.raises(ServiceError, match="did not finish") as caught:
        await asyncio.to_thread(check_script, "#!/bin/bash\ntrue\n", limits=impatient)
    assert caught.value.transient


@pytest.mark.parametrize("balance_wei", [0, 1, 100 * CREDIT_WEI - 1])
@pytest.mark.attack(
    "an uploader with a wei of credits", attacker="a stranger with HTTP", gain="a refusal",
    defence="the uploader holds what a job has to lock at the least, as the contract says",
)  # fmt: skip
async def test_an_uploader_holds_the_minimum(start: Start, balance_wei: int) -> None:
    chain = rich_chain()
    chain.minimum_wei = 100 * CREDIT_WEI
    chain.balances[ACCOUNTS["rival"].address] = balance_wei
    chain.balances[ACCOUNTS["customer"].address] = 100 * CREDIT_WEI
    grid = await start(chain)
    with pytest.raises(AccessDenied, match="fewer credits than a job has to lock"):
        await grid.rival.upload(a_job())
    assert await rows(grid, StoredDefinition) == 0
    async with person("127.0.6.6") as client:
        answer = await ask(client, grid, ACCOUNTS["customer"], "PUT", UPLOAD, UPLOAD_BODY)
    assert answer.status_code == 204
