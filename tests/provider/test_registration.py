"""Registration on a real chain with real hardware: changes are proposed, and measured labels are kept."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from deepgrid.billing.credits import format_credits
from deepgrid.chain.offers import Standing, differences, read_versions
from deepgrid.lifecycle.job import Hardware, Label, Prices
from deepgrid.provider.registration import await_approval, propose, register
from deployments.provider import supervisor
from tests.chain.grid import approve_waiting
from tests.provider.scene import OWN_LABELS, PRICES, Scene

GFLOPS = Label("compute.gflops", "12.50")


async def standing(scene: Scene) -> Standing:
    return (await read_versions(scene.session.chain, scene.session.address)).standing


async def test_a_cluster_proposes_itself_once_and_is_approved(scene: Scene) -> None:
    session = scene.session
    assert await standing(scene) is Standing.UNKNOWN
    first = await register(session)
    assert first.standing is Standing.WAITING
    assert "CPUs by node: 8, 8" in first.changes and "MB by node: 4000, 4000" in first.changes
    assert first.words.endswith("The provider waits for approval.")

    again = await register(session)
    assert again.words == "Nothing changed. The provider waits for approval."
    assert await await_approval(session, 0) is Standing.WAITING

    await approve_waiting(scene.operator, session.address)
    assert await await_approval(session, 60) is Standing.APPROVED
    assert (await register(session)).words == "Nothing changed. The provider is approved."


async def test_a_change_is_proposed_while_the_approved_version_stays_in_force(scene: Scene) -> None:
    session = scene.session
    await register(session)
    await approve_waiting(scene.operator, session.address)
    session.settings = replace(session.settings, prices=replace(PRICES, cpu_wei_per_minute=7))
    changed = await register(session)
    assert changed.standing is Standing.CHANGE_WAITS and changed.standing.in_force
    assert changed.changes == (
        f"credits per CPU and minute: {format_credits(PRICES.cpu_wei_per_minute)} -> 0.000000000000000007",
    )
    assert (await session.chain.provider(session.address)).prices == PRICES

    session.settings = replace(session.settings, prices=PRICES)
    assert (await register(session)).changes  # the version in force is proposed again


async def test_measured_labels_stay_and_own_ones_follow_the_block(scene: Scene) -> None:
    session = scene.session
    hardware = await session.cluster.hardware()
    await propose(session, hardware, measured=(GFLOPS,))
    assert not (await register(session)).changes
    session.settings = replace(session.settings, labels=(Label("name", "unit"),))
    assert (await register(session)).changes == ("label region: ch -> none",)
    proposed = await session.chain.proposal(session.address)
    assert proposed is not None
    assert proposed.labels == (GFLOPS, Label("name", "unit"))


async def test_a_banned_provider_is_told_so(scene: Scene) -> None:
    await register(scene.session)
    await scene.operator.ban_provider(scene.session.address)
    assert (await register(scene.session)).words == "Nothing changed. The provider is banned."
    assert await standing(scene) is Standing.BANNED and not Standing.BANNED.in_force


async def test_the_supervisor_registers_without_prefect(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise httpx.ConnectError("Prefect is away")

    monkeypatch.setattr(supervisor, "start_run", away)
    await supervisor._register(scene.session)
    assert await standing(scene) is Standing.WAITING


def test_differences_name_what_moved_in_either_direction() -> None:
    hardware, prices = Hardware((0,), (4,), (8000,)), Prices(1, 2, 3)
    assert "GPUs by node: 0" in differences(None, hardware, prices, OWN_LABELS)
    assert differences(None, hardware, prices, OWN_LABELS)[-1] == "label region: ch"
