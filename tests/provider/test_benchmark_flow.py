"""The flow `benchmark_cluster` under a real Prefect: after a failed program the others still run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from prefect.artifacts import Artifact
from prefect.testing.utilities import prefect_test_harness

from flows.benchmark_cluster import benchmark_cluster
from orchestration import sessions
from tests.provider.scene import Scene

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def prefect() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield


async def test_a_failed_program_is_named_and_the_others_run(scene: Scene) -> None:
    session = scene.session
    session.settings = replace(
        session.settings, benchmarks=replace(session.settings.benchmarks, python="/no/such/python", wait_minutes=5)
    )
    async with sessions.serving_provider(session):
        partly = await benchmark_cluster("unit", ["machine", "network"], return_state=True)
        nothing = await benchmark_cluster("unit", ["network"], return_state=True)
    assert partly.is_completed(), partly
    assert partly.message is not None
    assert partly.message.startswith("Proposed arch none -> ")
    assert "the provider waits for approval; network failed (" in partly.message
    assert nothing.is_failed(), nothing
    assert nothing.message is not None
    assert nothing.message.startswith("Nothing moved by more than 5 %; network failed (")

    artifact = await Artifact.aget("benchmark-unit")
    assert artifact is not None
    assert '"label": "os", "was": "linux", "is": "linux"' in str(artifact.data)
