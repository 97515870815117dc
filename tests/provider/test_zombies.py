"""Zombies on a real chain and a real Slurm: lost jobs are refunded, ended jobs are settled, others are left alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.decide import LOST
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.zombies import cancel_left_over, look_again, look_for_zombies, put_right
from deepgrid.slurm.observe.verdict import Verdicts, VerdictSettings
from tests.provider.claims import account_of, in_queue, running
from tests.provider.scene import Scene
from tests.slurm.losing import lose, lose_state
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, leave
from tests.waiting import until


@pytest.fixture
def stop(box: Box) -> Iterator[Callable[[str], None]]:
    """Stop a daemon. All daemons run again after the test."""
    yield box.stop
    box.start()


async def test_a_lost_job_is_refunded_in_full_and_says_why(approved: Scene, box: Box) -> None:
    session = approved.session
    key = await running(approved, box)
    lose(box.site, box.name, key)

    found = await look_for_zombies(session)
    assert (found.claims, [suspect.key for suspect in found.suspects]) == (1, [key])
    assert await look_again(session, found.suspects, grace_s=600) == []  # not yet
    (seen,) = await look_again(session, found.suspects, grace_s=0)
    said = await put_right(session, seen)
    assert (said.verb, said.job_id, said.account) == ("settled", key.job_id, str(account_of(box)))
    assert (said.reason, said.cost_wei, said.slurm_id is not None) == (f"it is panicked, {LOST}", 0, True)

    job = await session.chain.job(key.job_id)
    assert (job.status, job.final_cost_wei, job.last_error) == (JobStatus.PANICKED, 0, LOST)
    assert (box.folder(key) / "tombstone").exists()  # it cannot start late
    assert await put_right(session, seen) == said  # a repetition changes nothing
    assert (await look_for_zombies(session)).claims == 0


async def test_a_job_that_ended_unseen_is_settled_as_it_ended(approved: Scene, box: Box) -> None:
    session = approved.session
    key = await running(approved, box)
    leave(box, key)
    await until(lambda: not in_queue(box, key))

    found = await look_for_zombies(session)
    (seen,) = await look_again(session, found.suspects, grace_s=0)
    said = await put_right(session, seen)
    assert (said.verb, said.job_id, said.reason) == ("settled", key.job_id, "it is finished")
    settled = await session.chain.settlement(key.job_id)
    assert settled is not None and settled.billed_minutes == 1
    assert (box.folder(key) / "record").exists()  # acknowledged: the spool is free


async def test_a_job_whose_start_was_not_reported_is_reported_and_settled(approved: Scene, box: Box) -> None:
    session = approved.session
    key = await approved.claimed()
    await session.cluster.submit(key, bash("exit 3"), SMALL)
    await until(lambda: not in_queue(box, key))
    found = await look_for_zombies(session)
    (seen,) = await look_again(session, found.suspects, grace_s=0)
    assert (await put_right(session, seen)).reason.startswith("it is failed")
    assert (await session.chain.job(key.job_id)).exit_status == 768


async def test_running_jobs_are_left_alone(approved: Scene, box: Box) -> None:
    await running(approved, box)
    await approved.claimed()  # its run has not submitted it yet
    found = await look_for_zombies(approved.session)
    assert (found.claims, found.suspects, found.left_over) == (2, (), ())


@pytest.mark.long
async def test_nothing_is_concluded_while_slurm_does_not_answer(
    approved: Scene, box: Box, stop: Callable[[str], None]
) -> None:
    session = approved.session
    key = await running(approved, box)
    lose(box.site, box.name, key)
    found = await look_for_zombies(session)
    stop("slurmctld")
    with pytest.raises(SlurmUnreachable):
        await look_for_zombies(session)
    with pytest.raises(SlurmUnreachable):
        await look_again(session, found.suspects, grace_s=0)
    assert (await session.chain.job(key.job_id)).status is JobStatus.RUNNING


async def test_nothing_is_concluded_while_the_accounting_does_not_answer(
    approved: Scene, box: Box, stop: Callable[[str], None]
) -> None:
    key = await running(approved, box)
    lose(box.site, box.name, key)
    stop("slurmdbd")
    with pytest.raises(SlurmUnreachable):
        await look_for_zombies(approved.session)


async def test_a_slurm_job_whose_claim_is_over_is_cancelled(approved: Scene, box: Box) -> None:
    session = approved.session
    key, other = await running(approved, box), await running(approved, box)
    stranger = JobKey(key.chain_id, "0x" + "c0ffee00" * 5, key.job_id, key.claimed_at)
    await session.cluster.submit(stranger, bash(WAIT_FOR_LEAVE), SMALL)
    await approved.operator.panic_job(key.job_id, "the operator ended it")

    (left,) = (await look_for_zombies(session)).left_over
    assert left.key == key
    said = await cancel_left_over(session, left)
    assert (said.verb, said.noun, said.reason) == ("cancelled", "Slurm job", f"job {key.job_id} is panicked")
    await until(lambda: (box.folder(key) / "tombstone").exists() and "RUNNING" not in _states(box, key))
    assert in_queue(box, other) == "RUNNING"
    assert not (box.folder(stranger) / "tombstone").exists()
    leave(box, stranger)


def _states(box: Box, key: JobKey) -> str:
    """Return the states of the Slurm jobs with exactly this comment."""
    rows = box.slurm("squeue", "-h", "-a", "-n", key.name, "-o", "%T %k").splitlines()
    return " ".join(row for row in rows if row.endswith(key.comment))


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_controller_that_lost_its_state_costs_no_job_at_once_and_a_lost_one_is_refunded(
    approved: Scene, box: Box
) -> None:
    """The queue is suddenly empty: for a minute nothing is collected."""
    session, settings = approved.session, VerdictSettings(remembered_s=120.0)  # a restart may take a while
    session.cluster.verdicts = Verdicts(settings)
    key = await running(approved, box)
    assert (await look_for_zombies(session)).suspects == ()  # seen alive
    await asyncio.to_thread(lose_state, box.site, box.table, box.name)
    began = time.monotonic()
    assert (await look_for_zombies(session)).suspects == ()
    while not (found := await look_for_zombies(session)).suspects:
        assert time.monotonic() < began + 3 * settings.empty_queue_s
        await asyncio.sleep(1)
    (seen,) = await look_again(session, found.suspects, grace_s=0)
    assert (await put_right(session, seen)).reason.startswith("it is panicked")
    job = await session.chain.job(key.job_id)
    assert job.final_cost_wei == 0
    assert job.last_error.startswith("the cluster lost the job")
    settled = await session.chain.settlement(key.job_id)
    assert settled is not None
    assert settled.refunded_wei == job.locked_wei
