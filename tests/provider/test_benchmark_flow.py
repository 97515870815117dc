"""The flow `benchmark_cluster` under a real Prefect: after a failed program the others still run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prefect.artifacts import Artifact

from deepgrid.benchmark import measuring
from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Label
from deepgrid.provider import measurements
from deepgrid.provider.session import ProviderSession
from flows.benchmark_cluster import benchmark_cluster
from orchestration import grid_events, sessions
from tests.provider.scene import Scene
from tests.temporary_prefect import temporary_prefect

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def prefect() -> Iterator[None]:
    with temporary_prefect():
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
    assert partly.message.count(". ") == 0, "one sentence"
    assert nothing.is_failed(), nothing
    assert nothing.message is not None
    assert nothing.message.startswith("Nothing moved by more than 5 %; network failed (")

    artifact = await Artifact.aget("benchmark-unit")
    assert artifact is not None
    assert '"label": "os", "was": "linux", "is": "linux"' in str(artifact.data)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The events that Prefect gets, with their reasons."""
    sent: list[tuple[str, str]] = []

    def emit(event: str, resource: dict[str, str], payload: dict[str, str]) -> None:
        assert resource["prefect.resource.id"] == "deepgrid.benchmark.unit"
        sent.append((event, payload["reason"]))

    monkeypatch.setattr(grid_events, "emit_event", emit)
    return sent


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[float | Exception | type[BaseException]]:
    """The rates that HPL measures, one after the other; an exception is raised. Other programs measure a text."""
    left: list[float | Exception | type[BaseException]] = []

    async def measure(_: ProviderSession, program: Program) -> Outcome:
        if program != "hpl":
            return Outcome(program, (Label("os", "linux"),))
        if not isinstance(rate := left.pop(0), float):
            raise rate
        report = "WR11C2R4 2176 128 2 2 3.54 {}\n PASSED\n"
        said = "".join(report.format(rate * factor) for factor in (0.99, 1, 1.01))
        return measuring.read("hpl", said, BenchmarkSettings())

    monkeypatch.setattr(measurements, "measure", measure)
    return left


async def test_a_drop_marks_the_cluster_degraded_until_it_is_over(
    scene: Scene, events: list[tuple[str, str]], rates: list[float | Exception]
) -> None:
    said = "compute.gflops is 80.00, after a median of 100.00: 20 % slower"
    async with sessions.serving_provider(scene.session):
        rates += [100.0, 101.0, 99.0]
        for _ in range(3):
            await benchmark_cluster("unit", ["hpl"])
        assert events == []
        rates += [80.0, 100.0]
        slow = await benchmark_cluster("unit", ["hpl"], return_state=True)
        labels = await measurements.last_measured(scene.session)
        await benchmark_cluster("unit", ["hpl"])
        assert Label("benchmark.degraded", "compute.gflops") in labels
        assert slow.message is not None and f"the cluster is degraded: {said}" in slow.message
    assert events == [("deepgrid.degraded", said), ("deepgrid.degraded.over", said)]
    assert "benchmark.degraded" not in {label.key for label in await measurements.last_measured(scene.session)}

    plot = await Artifact.aget("benchmark-unit-trend")
    assert plot is not None and str(plot.data).startswith("data:image/png;base64,")
    months = await Artifact.aget("benchmark-unit-months")
    assert months is not None and '"label": "compute.gflops", "median": 100.0, "lowest": 80.0' in str(months.data)
    table = await Artifact.aget("benchmark-unit")
    assert table is not None and '"samples": 3, "spread": "2 %"' in str(table.data)


async def test_what_was_measured_before_a_restart_is_kept_and_a_failure_names_its_day(
    scene: Scene, rates: list[float | Exception | type[BaseException]]
) -> None:
    async with sessions.serving_provider(scene.session):
        rates += [100.0, SlurmError("The job ended `<img src=x>`."), asyncio.CancelledError]
        await benchmark_cluster("unit", ["hpl"])
        failed = await benchmark_cluster("unit", ["machine", "hpl"], return_state=True)
        with pytest.raises(asyncio.CancelledError):
            await benchmark_cluster("unit", ["machine", "hpl"])
        rates += [100.0]
        again = await benchmark_cluster("unit", ["hpl"], return_state=True)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    assert failed.message is not None and f"its last values of {today} stay." in failed.message
    assert again.is_completed(), "the lock of the run that ended is free"
    kept = [
        one.program for one in measurements.archive_of(scene.session).results() if one.key in ("os", "compute.gflops")
    ]
    assert kept == ["hpl", "machine", "machine", "hpl"]
    table = await Artifact.aget("benchmark-unit")
    assert table is not None and "<img" not in str(table.description)
