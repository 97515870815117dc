"""The books of a provider and of the operator, read from a real chain and a real Slurm accounting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.billing.reconcile import NEVER_SETTLED_GRACE_S, Reconciliation, needs_older_strays, reconcile
from deepgrid.billing.rules.kinds import Kind
from deepgrid.chain.ledger import Books
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.operator_books import OperatorBooks
from deepgrid.operator.session import OperatorSettings, operator_session
from deepgrid.provider.provider_books import ProviderBooks
from tests.chain.grid import CREDIT, Grid, pass_a_second
from tests.provider.scene import SMALL_JOB, Scene
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended


@pytest.fixture
async def operator_books(grid: Grid, scene: Scene, tmp_path: Path) -> AsyncIterator[OperatorBooks]:
    settings = OperatorSettings(tmp_path / "grid.json", grid.operator_key, tmp_path / "operator")
    async with operator_session(settings) as session:
        yield OperatorBooks("grid", session)


async def books(
    of: Books, *, tolerance: int = 1, grace_s: int = NEVER_SETTLED_GRACE_S, ahead_s: int = 0
) -> Reconciliation:
    """Return the books of the last day, as the flow reads them. `ahead_s` lets the period end later."""
    span = await of.period(None, None)
    span = replace(span, until=span.until + ahead_s)
    ledger = await of.read_chain(span)
    runs = await of.read_slurm(span, ledger)
    ledger = await of.with_jobs(ledger, runs)
    if of.provider is None and needs_older_strays(ledger):
        ledger = await of.with_older_strays(ledger)
    return reconcile(
        of.name, ledger, span, runs=runs, provider=of.provider, tolerance_minutes=tolerance,
        never_settled_grace_s=grace_s,
    )  # fmt: skip


async def run(scene: Scene, body: str = "true") -> JobKey:
    """Return a claim that ran in Slurm, and is running on chain."""
    key = await scene.claimed()
    await scene.session.cluster.submit(key, bash(body), SMALL)
    assert (await ended(scene.session.monitor, key)).phase is Phase.ENDED
    await begin(scene, key)
    return key


async def begin(scene: Scene, key: JobKey) -> None:
    """Report the job as running. One that ends in the same second costs nothing."""
    await scene.session.writer.set_running(key.job_id, 1)
    await pass_a_second(scene.session.chain)


def found(result: Reconciliation) -> list[tuple[int, Kind | None]]:
    return [(one.job_id, one.kind) for one in result.differences]


async def test_honest_bills_agree_for_provider_and_operator(approved: Scene, operator_books: OperatorBooks) -> None:
    session = approved.session
    for _ in range(2):
        key = await run(approved)
        await session.writer.settle(key.job_id, JobStatus.FINISHED, 1)
    still_open = await approved.claimed()
    mine = await books(ProviderBooks(session), tolerance=0)
    assert mine.clean, mine.message
    assert (mine.totals.jobs, mine.totals.paid, mine.totals.still_locked) == (3, 16 * CREDIT // 10, 100 * CREDIT)
    assert list(mine.rows["slurm_state"])[:2] == ["COMPLETED"] * 2
    assert mine.rows["job_id"].iloc[-1] == still_open.job_id
    of_the_grid = await books(operator_books)
    assert of_the_grid.clean, of_the_grid.message
    assert set(mine.rows["job_id"]) <= set(of_the_grid.rows["job_id"])


async def test_a_bill_for_what_never_ran_is_named(approved: Scene) -> None:
    key = await approved.claimed()
    await approved.session.writer.set_running(key.job_id, 1)
    await pass_a_second(approved.session.chain)
    await approved.session.writer.settle(key.job_id, JobStatus.FINISHED, 1)
    result = await books(ProviderBooks(approved.session))
    assert found(result) == [(key.job_id, Kind.NO_RUN)]
    assert result.imbalances == ()


async def test_an_end_without_a_bill_is_named_after_its_grace(approved: Scene) -> None:
    key = await run(approved)
    assert (await books(ProviderBooks(approved.session))).clean
    assert found(await books(ProviderBooks(approved.session), grace_s=-60)) == [(key.job_id, Kind.NEVER_SETTLED)]


async def test_a_second_run_is_named(approved: Scene, box: Box) -> None:
    key = await run(approved)
    await approved.session.writer.settle(key.job_id, JobStatus.FINISHED, 1)
    account = box.settings.job_account or box.settings.user
    again = box.slurm("sbatch", "--parsable", f"--uid={account}", "--chdir=/", "--output=/dev/null", "--wrap=true")
    with (Path(box.settings.grid_root) / "ledger").open("a") as ledger:
        ledger.write(f"{again.strip()} {key.folder} {getpwnam(account).pw_uid}\n")
    deadline = time.monotonic() + WAIT_S
    while not (result := await books(ProviderBooks(approved.session))).differences:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.3)
    assert found(result) == [(key.job_id, Kind.RAN_TWICE)]


async def test_a_gift_to_the_contract_is_no_difference(approved: Scene, operator_books: OperatorBooks) -> None:
    await approved.customer.transfer(approved.session.chain.book.meta_scheduler, 5)
    result = await books(operator_books)
    assert result.clean, result.message
    assert result.totals.strays >= 5


async def test_frauds_of_a_provider_are_named(approved: Scene) -> None:
    """Its reports are not what Slurm's accounting shows: end, exit status, and resources."""
    session = approved.session
    said = {
        Kind.ANOTHER_END: ("exit 1", JobStatus.FINISHED, 0),
        Kind.ANOTHER_EXIT: ("exit 3", JobStatus.FAILED, 4 << 8),
    }
    planted: dict[int, Kind] = {}
    for kind, (body, status, code) in said.items():
        key = await run(approved, body)
        await session.writer.settle(key.job_id, status, 1, exit_status=code)
        planted[key.job_id] = kind
    cpus = await approved.claimed(replace(SMALL_JOB, cpus_per_task=2))
    await session.cluster.submit(cpus, bash("true"), SMALL)
    assert (await ended(session.monitor, cpus)).phase is Phase.ENDED
    await begin(approved, cpus)
    await session.writer.settle(cpus.job_id, JobStatus.FINISHED, 1)
    result = await accounted(approved, len(planted) + 2)
    planted[cpus.job_id] = Kind.LESS_MEMORY
    assert {job: kind for job, kind in found(result) if job in planted} == planted
    assert (cpus.job_id, Kind.FEWER_CPUS) in found(result)


async def test_a_job_that_slurm_still_runs_after_its_settlement_is_named(approved: Scene) -> None:
    session = approved.session
    key = await approved.claimed()
    await session.cluster.submit(key, bash("sleep 300"), SMALL)
    session.monitor.watch(key)
    deadline = time.monotonic() + WAIT_S
    while session.monitor.observe(key).phase is not Phase.RUNNING:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    await begin(approved, key)
    await session.writer.settle(key.job_id, JobStatus.FINISHED, 1)
    about_to_end, late = [found(await books(ProviderBooks(session), ahead_s=ahead)) for ahead in (0, 120)]
    assert key.job_id not in dict(about_to_end)
    assert (key.job_id, Kind.STILL_RUNNING) in late
    await session.cluster.cancel(key)


async def accounted(scene: Scene, differences: int) -> Reconciliation:
    """Return the books once accounting has the ends of all runs."""
    deadline = time.monotonic() + WAIT_S
    while len((result := await books(ProviderBooks(scene.session))).differences) < differences:
        assert time.monotonic() < deadline, found(result)
        await asyncio.sleep(0.5)
    return result
