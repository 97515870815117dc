"""A customer blocks the cancel of its job, on a real chain. Its bill and the provider's record stay correct."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest

from deepgrid.chain.node.values import TrackRecord
from deepgrid.errors import ContractError
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.ssh.login_settings import CustomerAccounts
from tests.attacks.blocked_ground import WORK, Ground, blocked, ground
from tests.attacks.claims import ScriptedCarrier
from tests.attacks.flooding import flooding, limited_connections
from tests.attacks.saboteur import sabotage
from tests.attacks.small_disk import FULL, small_disk
from tests.chain.grid import Grid, running_grid
from tests.provider.scene import Scene, scene_with
from tests.slurm.support import WAIT_S, bash, open_folder, printed
from tests.waiting import until, wait_until

__all__ = ["blocked", "ground"]
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")]
ANSWER_DUE_S = 600  # after this, a customer may call again
SIZE = "size=2m"


def _root(ground: Ground) -> Path:
    return Path(ground.settings.grid_root)


def _once_full(ground: Ground) -> AbstractContextManager[None]:
    wait_until(lambda: os.statvfs(_root(ground)).f_bavail == 0)
    return nullcontext()


def _nothing(_: Ground) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Way:
    """The commands of the job, and the conditions before its start and at its cancel."""

    payload: Callable[[Ground], str] = lambda _: WORK
    before: Callable[[Ground], AbstractContextManager[None]] = _nothing
    at_cancel: Callable[[Ground], AbstractContextManager[None]] = _nothing


WAYS = {
    "stops": Way(at_cancel=lambda ground: sabotage(ground.alice, SIGSTOP)),
    "kills": Way(at_cancel=lambda ground: sabotage(ground.alice, SIGKILL)),
    "fills": Way(lambda _: f"echo works; {FULL[SIZE]}", lambda ground: small_disk(_root(ground), SIZE), _once_full),
    "floods": Way(
        lambda ground: f"echo works; {flooding(ground.box)}",
        lambda ground: limited_connections(ground.box, ground.settings),
    ),
}


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with open_folder() as folder, running_grid(folder) as grid:
        yield grid


@pytest.mark.attack(
    "blocks the cancel of its job in each known way, cancels on chain, and cancels again after ten minutes",
    attacker="a customer", gain="nothing: it pays for its minutes, and no fault is counted for the provider",
    defence="the cluster answers meanwhile, so the second cancel comes after the end",
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_cancel_is_billed_and_no_fault_of_the_provider(
    grid: Grid, ground: Ground, tmp_path: Path, way: str, request: pytest.FixtureRequest
) -> None:
    customer = grid.new_key(request.node.name)
    accounts = CustomerAccounts({customer.address: ground.alice.name})
    ground = replace(ground, settings=replace(ground.settings, accounts=accounts))
    async with scene_with(grid, ground.settings, tmp_path, customer) as scene:
        await scene.approve()
        with WAYS[way].before(ground):
            key = await scene.claimed()
            await _cancelled_while_it_runs(scene, key, ground, WAYS[way])
        grid.anvil.pass_time(ANSWER_DUE_S + 1)
        with pytest.raises(ContractError, match="The job is over"):
            await scene.customer.cancel_job(key.job_id)
        chain = scene.session.chain
        job, bill = await chain.job(key.job_id), await chain.settlement(key.job_id)
        assert (job.status, job.last_error) == (JobStatus.CANCELLED, "")
        assert job.ended_at - job.cancel_requested_at < ANSWER_DUE_S
        assert bill is not None and bill.billed_minutes == (await chain.constants()).cancellation_fee_minutes
        assert await chain.track_record(scene.session.address) == TrackRecord(1, refused=0, panicked=0, timed_out=0)


async def _cancelled_while_it_runs(scene: Scene, key: JobKey, ground: Ground, way: Way) -> None:
    """The job runs, its customer asks for its cancellation on chain, and the carrier drives it to its end."""
    session, job_id = scene.session, key.job_id
    async with session.driving(key), asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        carrier = ScriptedCarrier(session, key, bash(way.payload(ground)))
        carrying = tasks.create_task(drive(carrier.observe, carrier.act))
        await printed(session.cluster, key)
        await until(lambda: _runs(scene, job_id))
        with await asyncio.to_thread(way.at_cancel, ground):
            await scene.customer.cancel_job(job_id)
            session.wakeups.wake([job_id])
            await carrying


async def _runs(scene: Scene, job_id: int) -> bool:
    return (await scene.session.chain.job(job_id)).status is JobStatus.RUNNING
