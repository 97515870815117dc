"""A cluster without a guard claims no job, unless its provider accepts the gap. The chain and Slurm are real."""

from __future__ import annotations

import logging

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.findings import Level
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.doctor import examine_provider
from deepgrid.provider.registration import register
from deepgrid.slurm.setup.guards import NAMES, Gate
from deepgrid.slurm.ssh.login import Login
from tests.chain.grid import CREDIT
from tests.provider.scene import SMALL_JOB, Scene
from tests.slurm.support import Box


async def assigned(scene: Scene) -> int:
    """Return a job that is assigned to the provider."""
    job_id = await scene.customer.request_job(SMALL_JOB, 100 * CREDIT, "a job", approve_first=100 * CREDIT)
    await scene.operator.meta_schedule(job_id, scene.session.address)
    return job_id


async def test_nothing_is_claimed_without_guards(approved: Scene, caplog: pytest.LogCaptureFixture) -> None:
    session = approved.session
    job_id = await assigned(approved)
    login = Login(session.settings.login)
    try:
        session.gate = Gate(login, session.settings.login, (), trust_customers=False)
        with caplog.at_level(logging.WARNING):
            assert await session.claim_waiting() == []
            await register(session)
        assert "no job is claimed: The cluster lacks guards" in caplog.text
        assert "no job is claimed: The cluster lacks guards" in caplog.text
        assert (await session.chain.job(job_id)).status is JobStatus.META_SCHEDULED
        session.gate = Gate(login, session.settings.login, NAMES, trust_customers=False)
        (job,) = await session.claim_waiting()
        assert job.id == job_id
    finally:
        await login.close()


async def test_nothing_is_claimed_when_guards_cannot_be_checked(approved: Scene, box: Box) -> None:
    session = approved.session
    await assigned(approved)
    login = Login(session.settings.login)
    session.gate = Gate(login, session.settings.login, NAMES, trust_customers=False)
    box.stop("sshd")
    try:
        with pytest.raises(SlurmUnreachable):
            await session.claim_waiting()
    finally:
        box.start()
        await login.close()
    session.gate = Gate(login, session.settings.login, (), trust_customers=True)
    assert len(await session.claim_waiting()) == 1


async def test_the_doctor_names_each_missing_guard(scene: Scene) -> None:
    findings = await examine_provider(scene.session.settings)
    guards = {one.subject: one for one in findings if one.subject.startswith("guard ")}
    assert guards["guard accounts"].level is Level.WARNING
    assert all("customers are trusted" in one.words and one.next_step for one in guards.values())
