"""Attempts to work without pay: launches that fail on purpose, and jobs outside the claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from deepgrid.lifecycle.ends import HAD_RUN
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deployments.onemachine.slurm import ClusterSpec
from tests.attacks.attacker import Attacker, attacker, missing, requests_in
from tests.attacks.claims import Books, settings_with, supervisor
from tests.slurm.support import Box, open_folder, running_box
from tests.waiting import until

CUSTOMER = "0x" + "a" * 40
JOBS = (
    ("sbatch", "--wrap=sleep 300"),
    ("sbatch", "-H", "--wrap=sleep 300"),
    ("sbatch", "--array=0-2", "--wrap=sleep 300"),
    ("sbatch", "--array=0-2%1", "-H", "--wrap=sleep 300"),
    ("sbatch", "--begin=now+1hour", "--requeue", "--job-name=x\n1|0|RUNNING|||", "--wrap=sleep 300"),
    ("sbatch", "-n1", "--wrap=sleep 300", ":", "-n1"),
    ("salloc", "--no-shell", "-n1"),
)

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.long]


@dataclass(frozen=True)
class Scene:
    """A cluster whose guard is missing, a customer with an account on it, and another account."""

    box: Box
    customer: Attacker
    bystander: Attacker
    settings: LoginSettings


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        requests = requests_in(stack.enter_context(open_folder()))
        spec = ClusterSpec("unpaid", cpus_per_node=32, mem_per_node_mb=64_000, guard=False, accounting=False)
        box = stack.enter_context(running_box(spec))
        customer, bystander = (stack.enter_context(attacker(box, requests)) for _ in range(2))
        yield Scene(box, customer, bystander, settings_with(box, {CUSTOMER: customer.name}))


@pytest.mark.attack(
    "jobs that end themselves as failed launches within a minute", attacker="a job's account", gain="nothing",
    defence="a launch counts as failed only if the file that the guard removes is still there",
)  # fmt: skip
async def test_a_payload_that_ran_is_no_failed_launch(scene: Scene) -> None:
    books, bills = Books(), []
    body = "touch unstarted; sleep 1; complete 0x7F0B"
    async with supervisor(books, scene.settings) as one:
        for _ in range(2):
            claim = books.claim(CUSTOMER, scene.customer.payload(body), 5)
            await one.carry(claim)
            bills.append((books.bill(claim), books.outcome(claim).last_error))
    assert bills == [(1, HAD_RUN.error), (1, HAD_RUN.error)]


@pytest.mark.attack(
    "sbatch, arrays, heterogeneous jobs and salloc in addition to a claim, on a cluster without a guard",
    attacker="a job's account", gain="the run time until the provider's next poll",
    defence="jobs of customers' accounts that are not in the ledger of claims are ended",
)  # fmt: skip
async def test_jobs_beside_a_claim_are_found_and_ended(scene: Scene) -> None:
    books = Books()
    async with supervisor(books, scene.settings) as one:
        claim = books.claim(CUSTOMER, scene.customer.payload("until [ -e leave ]; do sleep 0.2; done"), 5)
        carrying = asyncio.create_task(one.carry(claim))
        folder = scene.box.folder(claim.key)
        await until(lambda: (folder / "id").exists() and not (folder / "run" / "unstarted").exists())
        others = scene.bystander.run("sbatch", "--parsable", "--wrap=sleep 300").stdout.strip()
        for argv in JOBS:
            done = scene.customer.run(*argv)
            assert done.returncode == 0, done.stderr
        found = (await one.cluster.queue(claim.key)).foreign
        assert {row.user for row in found} == {str(scene.customer.uid)}
        assert len(found) >= len(JOBS)
        await one.cluster.end_foreign(found)
        await until(lambda: len(_queued(scene, scene.customer)) == 1)
        assert _queued(scene, scene.customer) == [(folder / "id").read_text().split()[0]]
        assert _queued(scene, scene.bystander) == [others]
        (folder / "run" / "leave").touch()
        await carrying
    assert books.outcome(claim).status is JobStatus.FINISHED
    scene.box.slurm("scancel", others)


def _queued(scene: Scene, who: Attacker) -> list[str]:
    """Return the jobs of an account that wait or run, with each part of heterogeneous and array jobs."""
    states = "pending,running,suspended,configuring"
    return scene.box.slurm("squeue", "-h", "-a", "-r", "-t", states, "-u", who.name, "-o", "%A").split()
