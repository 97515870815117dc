"""While the platform's cut is above the provider's limit, no job is claimed or run, and no capacity is offered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blocks import Provider
from deepgrid.chain.node.values import Cut
from deepgrid.chain.offers import Standing, read_versions
from deepgrid.errors import ConfigurationError
from deepgrid.findings import Level
from deepgrid.lifecycle.actions import Refuse
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.registration import register
from deepgrid.provider.terms import finding, too_high, why_not_claimed
from tests.provider.scene import Scene

WHY = "the platform keeps 20 % of a job's cost, this provider accepts at most 19 %"


def accept_at_most(scene: Scene, percent: int) -> None:
    scene.session.settings = replace(scene.session.settings, max_cut_percent=percent)


async def test_a_claimed_job_with_too_high_a_cut_is_given_back_and_the_customer_is_told(
    approved: Scene, key: JobKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = []

    async def explain(job_id: int, kind: str, text: str) -> None:
        notices.append((job_id, kind, text))

    monkeypatch.setattr(approved.session, "explain", explain)  # there are no services
    accept_at_most(approved, 19)
    told: list[str] = []
    async with carry(approved.session, key, tell=told.append) as carrier:
        assert await carrier.fetch_script() is None
        action = decide(await carrier.observe())
        assert action == Refuse(WHY)
        await carrier.refuse(action.reason)
    assert notices == [(key.job_id, "refused", WHY)]
    assert f"given back to the grid: {WHY}" in told
    assert (await approved.session.chain.job(key.job_id)).status is JobStatus.PENDING


async def test_nothing_is_claimed_while_the_cut_in_force_is_too_high(scene: Scene) -> None:
    assert await why_not_claimed(scene.session) == ""
    accept_at_most(scene, 19)
    assert await why_not_claimed(scene.session) == WHY


async def test_a_grid_with_too_high_a_cut_is_not_joined(scene: Scene) -> None:
    accept_at_most(scene, 19)
    with pytest.raises(ConfigurationError) as refused:
        await register(scene.session)
    assert refused.value.message == f"The cluster does not join this grid: {WHY}."
    versions = await read_versions(scene.session.chain, scene.session.address)
    assert versions.standing is Standing.UNKNOWN
    accept_at_most(scene, 20)
    assert (await register(scene.session)).standing is Standing.WAITING


def test_the_doctor_also_reports_an_announced_cut() -> None:
    assert finding(Cut(20, 0, 0), 20).level is Level.GOOD
    assert finding(Cut(20, 30, 1_900_000_000), 30).level is Level.GOOD
    announced = finding(Cut(20, 30, 1_900_000_000), 20)
    assert announced.level is Level.WARNING and "From unix second 1900000000 on" in announced.words
    assert finding(Cut(30, 10, 1_900_000_000), 20).level is Level.BAD


def test_a_cut_equal_to_the_limit_is_accepted() -> None:
    assert too_high(20, 20) == ""
    assert Provider.model_fields["max_cut_percent"].default == 20
