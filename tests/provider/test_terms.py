"""Jobs of refused customers are given back before they start, with a reason. Other jobs run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from blocks import Grid, Provider, SlurmLogin, Wallet
from deepgrid.errors import NotFound
from deepgrid.lifecycle.actions import Refuse
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from tests.provider.scene import FOREIGN_JOB, Scene
from tests.slurm.support import Box

ADDRESS = "0x" + "ab" * 20


def block(home: Path, *refused: str) -> Provider:
    login = SlurmLogin(
        host="login", port=22, user="u", key_file=home, known_hosts_file=home, grid_root="/grid", storage_root="/s"
    )  # fmt: skip
    return Provider(
        cluster="unit", grid=Grid(address_book=home), login=login, state=home, refused_customers=list(refused),
        wallet=Wallet(address=ADDRESS, key_file=home), gpu_wei_per_minute="1", cpu_wei_per_minute="1",
        mem_wei_per_mb_minute="1",
    )  # fmt: skip


async def test_a_refused_customers_claim_goes_back_before_anything_of_it_starts(
    approved: Scene, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, said = approved.session, []

    async def post(_: int, kind: str, text: str) -> None:  # there are no services
        said.append((kind, text))

    monkeypatch.setattr(session.services, "post_notice", post)
    session.settings = replace(session.settings, refused_customers=(approved.customer.address,))
    key = await approved.claimed()
    async with carry(session, key) as carrier:
        assert await carrier.fetch_script() is None
        action = decide(await carrier.observe())
        assert isinstance(action, Refuse)
        await carrier.act(action)
    assert [kind for kind, _ in said] == ["refused"]
    assert "takes no jobs of this customer" in said[0][1]
    job = await session.chain.job(key.job_id)
    assert (job.status, job.last_refuser) == (JobStatus.PENDING, session.address)
    assert box.ids(key) == []


async def test_a_job_that_names_no_definition_ends_at_its_first_cluster(approved: Scene) -> None:
    """Each further cluster would pay gas for a claim and a refusal, and the operator for an assignment."""
    chain, customer = approved.session.chain, approved.customer.address
    before = await chain.balance(customer)
    key = await approved.claimed(FOREIGN_JOB)
    async with carry(approved.session, key) as carrier:
        assert await carrier.fetch_script() is None
        await carrier.act(decide(await carrier.observe()))
    job = await chain.job(key.job_id)
    assert (job.status, job.last_refuser) == (JobStatus.FAILED, None)
    assert "names no definition of this grid" in job.last_error
    assert await chain.balance(customer) == before


async def test_other_customers_are_served(approved: Scene, key: JobKey, monkeypatch: pytest.MonkeyPatch) -> None:
    session, asked = approved.session, []

    async def fetch(job_id: int, _: str) -> None:
        asked.append(job_id)
        raise NotFound("the definition is not there")

    monkeypatch.setattr(session.services, "fetch_definition", fetch)
    session.settings = replace(session.settings, refused_customers=(session.address,))
    async with carry(session, key) as carrier:
        await carrier.fetch_script()
    assert asked == [key.job_id]


def test_addresses_are_checked_and_kept_with_their_checksum(tmp_path: Path) -> None:
    (kept,) = block(tmp_path, ADDRESS).settings().refused_customers
    assert (kept != ADDRESS, kept.lower()) == (True, ADDRESS)
    for wrong in ("alice", "0x12", kept.swapcase().replace("0X", "0x")):
        with pytest.raises(ValidationError):
            block(tmp_path, wrong)
