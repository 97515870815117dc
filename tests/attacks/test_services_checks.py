"""Customers send definitions that are expensive to check, while other customers wait."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from deepgrid.errors import AccessDenied, InputError, ServiceError
from deepgrid.sbatch import ScriptParts
from deepgrid.services.admission import Limits, checks
from deepgrid.services.script_check import CheckLimits, check_script
from deepgrid.services.storage.database import Definition as StoredDefinition
from deepgrid.workflow import Definition, Step, StepRun
from deepgrid.workflow.models import ContainerRun
from tests.attacks.http_support import UPLOAD, UPLOAD_BODY, ask, person, rows
from tests.services.support import ACCOUNTS, Start, a_job, client_of, rich_chain

CREDIT_WEI = 10**18


def expensive(steps: int, name: str = "x") -> Definition:
    """Return a definition with this many container steps.

    Another name makes another script, even without its commands.
    """
    step = Step(run=StepRun(command=f"echo {name}", container=ContainerRun(image=name)))
    return a_job().model_copy(update={"steps": (step,) * steps})


@pytest.mark.attack(
    "repeated uploads of a definition with 1,000 container steps", attacker="a customer", gain="some rendering",
    defence="the size of the rendered script is limited before any check; verdicts are cached",
)  # fmt: skip
async def test_a_definition_that_is_too_expensive_is_not_checked(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: checked.append(part))
    grid = await start()
    for _ in range(5):
        with pytest.raises(InputError, match="use fewer steps"):
            await grid.customer.upload(expensive(1000))
    assert [len(part.encode()) < 512 * 1024 for part in checked] in ([], [True, True])


@pytest.mark.attack(
    "10 of the most expensive accepted definitions at once", attacker="a customer",
    gain="one check at a time; only its own uploads wait",
    defence="uploaders take turns, and small definitions have their own slot",
)  # fmt: skip
async def test_expensive_uploads_delay_no_other_customer(start: Start) -> None:
    grid = await start()
    flood = [asyncio.create_task(grid.customer.upload(expensive(120, f"n{n}"))) for n in range(10)]
    try:
        async with asyncio.timeout(60):
            while not grid.context.checks.queue.running:
                await asyncio.sleep(0.01)
        for number in range(3):
            await grid.rival.upload(a_job(f"echo {number}"))
            assert grid.context.checks.queue.running <= 2
        assert not all(task.done() for task in flood), "the other customer was not served first"
    finally:
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


@pytest.mark.attack(
    "more uploads than the queue allows", attacker="a customer",
    gain="64 waiting uploads; the others get a time to retry",
    defence="the queue is bounded per uploader and in time",
)  # fmt: skip
async def test_waiting_uploads_are_bounded_and_the_others_retry(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "lint_script", lambda *_, **__: None)
    monkeypatch.setattr(checks, "check_grammar", lambda _script, **_: time.sleep(0.3))
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
        assert len(set(hashes)) == 12, "a client that retries at the given time loses nothing"


@pytest.mark.attack(
    "the same definition 50 times, under other names", attacker="a customer", gain="one check",
    defence="verdicts are cached by the rendered script",
)  # fmt: skip
async def test_a_checked_script_is_not_checked_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: seen.append(part))
    grid = await start()
    hashes = await asyncio.gather(*(grid.customer.upload(a_job()) for _ in range(50)))
    assert len(set(hashes)) == 50
    assert len(seen) == 2, "preamble and steps"
    await grid.rival.upload(a_job().model_copy(update={"enable_logging": True}))
    assert len(seen) == 2, "the same two parts"


async def test_jobs_with_other_steps_and_resources_share_the_check_of_the_preamble(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: seen.append(part))
    grid = await start()
    for number in range(2, 5):
        step = Step(name=f"step {number}", run=StepRun(command="true"))
        job = a_job()
        resources = job.resources.model_copy(update={"tasks": number, "mem_per_cpu": 10 * number})
        await grid.customer.upload(job.model_copy(update={"steps": (step,) * number, "resources": resources}))
    preambles = [part for part in seen if part.startswith("#!")]
    assert (len(preambles), len(seen)) == (1, 4)
    assert "export NTASKS=1\n" in preambles[0]


async def test_a_warning_of_shellcheck_in_either_part_refuses_the_job(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = await start()
    whole = checks.render_parts

    def spoiled(*arguments: object) -> ScriptParts:
        found = whole(*arguments)  # type: ignore[arg-type]
        return found._replace(**{part: getattr(found, part) + "for x in `ls`; do\n  cat $x | read y; done\n"})

    for part in ("preamble", "steps"):
        with monkeypatch.context() as patched:
            patched.setattr(checks, "render_parts", spoiled)
            with pytest.raises(InputError, match="shellcheck warns"):
                await grid.customer.upload(a_job(f"echo {part}"))
    await grid.customer.upload(a_job("echo neither"))


@pytest.mark.attack(
    "a script that a checker never finishes", attacker="a customer", gain="10 s of one core, once",
    defence="processor time and duration are bounded; the verdict is cached",
)  # fmt: skip
async def test_a_check_without_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "shellcheck"
    endless.write_text("#!/bin/bash\nwhile :; do :; done\n")
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    quick = CheckLimits(processor_s=1)
    with pytest.raises(InputError, match="use fewer steps"):
        await asyncio.to_thread(check_script, "#!/bin/bash\ntrue\n", limits=quick)
    endless.write_text("#!/bin/bash\nread -r -t 100 <> <(:)\n")  # a check that takes no processor time
    impatient = CheckLimits(processor_s=1, within_s=0.5)
    with pytest.raises(ServiceError, match="did not finish") as caught:
        await asyncio.to_thread(check_script, "#!/bin/bash\ntrue\n", limits=impatient)
    assert caught.value.transient


@pytest.mark.parametrize("balance_wei", [0, 1, 100 * CREDIT_WEI - 1])
@pytest.mark.attack(
    "uploads with an account that has one wei of credits", attacker="a stranger with HTTP", gain="a refusal",
    defence="the uploader must have the minimum that the contract requires for a job",
)  # fmt: skip
async def test_an_uploader_must_have_the_minimum(start: Start, balance_wei: int) -> None:
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
