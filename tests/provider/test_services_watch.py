"""A supervisor whose services cannot serve it claims no job until they can."""

from __future__ import annotations

import asyncio
import logging

import pytest

from deepgrid.errors import ConfigurationError, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.upkeep import watch_services
from deepgrid.services.client import ServicesClient
from tests.chain.grid import CREDIT
from tests.provider.scene import SMALL_JOB, Scene
from tests.waiting import until

OLD = ConfigurationError("This program is older than its grid.", next_step="Upgrade it.")


async def test_no_job_is_claimed_while_the_supervisor_is_older_than_its_grid(
    approved: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, answers = approved.session, [OLD, OLD, ServiceError("The services are down.")]
    job_id = await approved.customer.request_job(SMALL_JOB, 100 * CREDIT, "a job", approve_first=100 * CREDIT)
    await approved.operator.meta_schedule(job_id, session.address)

    async def health(_client: ServicesClient) -> None:
        if answers:
            raise answers[0] if len(answers) == 1 else answers.pop(0)

    monkeypatch.setattr(ServicesClient, "health", health)
    with caplog.at_level(logging.WARNING):
        watching = asyncio.create_task(watch_services(session, check_every_s=0.01))
        await until(lambda: len(answers) == 1)
        assert await session.claim_waiting() == []
        assert (await session.chain.job(job_id)).status is JobStatus.META_SCHEDULED
        assert session.services_fault == "This program is older than its grid", "services that are down change nothing"
        answers.clear()
        await until(lambda: not session.services_fault)
        watching.cancel()
    assert caplog.text.count("no job is claimed: This program is older than its grid. Upgrade it.") == 1
    assert [job.id for job in await session.claim_waiting()] == [job_id]
