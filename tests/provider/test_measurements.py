"""Labels from real Slurm jobs are proposed on a real chain when one moved, with the provider's own labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.benchmark.labels import measured_of, merge
from deepgrid.benchmark.outcome import update_labels
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Label
from deepgrid.provider.measurements import last_measured, measure, propose_if_moved
from tests.chain.grid import approve_waiting
from tests.provider.scene import OWN_LABELS, Scene

GFLOPS = Label("compute.gflops", "100.00")


async def test_what_was_measured_is_proposed_once(scene: Scene) -> None:
    session = scene.session
    old = await last_measured(session)
    assert old == ()
    new = update_labels(old, [await measure(session, "machine")])
    proposed = await propose_if_moved(session, old, new)
    assert proposed is not None and proposed.changes
    await approve_waiting(scene.operator, session.address)
    provider = await session.chain.provider(session.address)
    assert provider.labels == merge(OWN_LABELS, new)
    assert Label("os", "linux") in measured_of(provider.labels)

    old = await last_measured(session)
    assert old == new
    assert await propose_if_moved(session, old, update_labels(old, [await measure(session, "machine")])) is None


async def test_a_figure_that_moved_a_little_is_not_proposed(scene: Scene) -> None:
    session = scene.session
    assert await propose_if_moved(session, (), (GFLOPS,))
    assert await propose_if_moved(session, await last_measured(session), (replace(GFLOPS, value="104.00"),)) is None
    assert await last_measured(session) == (GFLOPS,)
    assert await propose_if_moved(session, await last_measured(session), (replace(GFLOPS, value="106.00"),))
    assert await last_measured(session) == (replace(GFLOPS, value="106.00"),)


async def test_an_own_label_is_no_measurement(scene: Scene) -> None:
    session = scene.session
    session.settings = replace(session.settings, labels=(*OWN_LABELS, GFLOPS))
    assert await propose_if_moved(session, (), (Label("os", "linux"),))
    assert await last_measured(session) == (Label("os", "linux"),)


async def test_a_program_that_cannot_start_fails_with_its_output(scene: Scene) -> None:
    session = scene.session
    session.settings = replace(
        session.settings, benchmarks=replace(session.settings.benchmarks, python="/no/such/python", wait_minutes=5)
    )
    with pytest.raises(SlurmError, match="network ended FAILED: .*/no/such/python"):
        await measure(session, "network")
    assert await last_measured(session) == ()
