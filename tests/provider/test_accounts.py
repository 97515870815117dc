"""A job runs in its customer's account, or is refused without one. The chain and Slurm are real."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.actions import Refuse
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deepgrid.slurm.ssh.login_settings import CustomerAccounts
from tests.provider.scene import Scene
from tests.slurm.support import Box, bash

OTHER_CUSTOMER = "0x" + "ab" * 20


def give(scene: Scene, table: dict[str, str]) -> None:
    """Set the account table. Other customers have no account."""
    cluster = scene.session.cluster
    cluster.settings = replace(cluster.settings, job_account=None, accounts=CustomerAccounts(table))


async def test_a_job_whose_customer_has_no_account_is_given_back_with_the_reason(approved: Scene) -> None:
    session, key = approved.session, await approved.claimed()
    give(approved, {OTHER_CUSTOMER: "other"})
    async with carry(session, key) as carrier:
        await carrier.submit(bash("true"))
        action = decide(await carrier.observe())
        assert isinstance(action, Refuse)
        assert "no Unix account for the customer" in action.reason
        await carrier.refuse(action.reason)
    job = await session.chain.job(key.job_id)
    assert (job.status, job.last_refuser) == (JobStatus.PENDING, session.address)


async def test_a_carrier_submits_in_the_account_of_the_jobs_customer(approved: Scene, box: Box) -> None:
    account = box.settings.job_account
    if account is None:
        pytest.skip("not root: jobs and supervisor share one account")
    session, key = approved.session, await approved.claimed()
    give(approved, {(await session.chain.job(key.job_id)).customer: account})
    async with carry(session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
        assert box.slurm("squeue", "-h", "-a", "-n", key.name, "-o", "%u").split() == [account]
        await carrier.cancel_at_slurm("a test ends")
