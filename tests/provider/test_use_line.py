"""The last lines of a log say what the job used. They never fail the carrier, and a short run has none."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from deepgrid.billing.resource_use import Measured
from deepgrid.billing.use_samples import UseSample
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.claims.use_line import say_use
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.commands.step_uses import Run
from tests.provider.scene import Scene

LONG = SlurmJob(Phase.ENDED, 7, "COMPLETED", 1_000_000, 1_000_100)


class Uses:
    """The accounting of a cluster: the answers to one request after the other, and the requests."""

    def __init__(self, *answers: Measured | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[Run] = []

    async def of(self, run: Run) -> Measured | None:
        self.asked.append(run)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def seen(scene: Scene, key: JobKey) -> Observation:
    """The last observation of a job of one CPU and 100 MB that ran for 100 s, and whose log is shipped."""
    async with carry(scene.session, key) as carrier:
        observed = await carrier.observe()
    scene.session.logs.follow(key)
    return replace(observed, slurm=LONG)


async def said(session: ProviderSession, seen: Observation, uses: Uses, patch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of the log."""
    lines: list[str] = []
    patch.setattr(session.logs, "say", lambda _, text: lines.append(text))
    patch.setattr(session, "uses", uses)
    await say_use(session, seen)
    return lines


async def test_the_line_comes_when_accounting_has_the_end(
    scene: Scene, seen: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.session.intervals = replace(scene.session.intervals, use_known_s=60.0)
    uses = Uses(None, Measured(cpu_s=90, memory_mb=20))
    lines = await said(scene.session, seen, uses, monkeypatch)
    assert uses.asked == [(7, 1_000_000)] * 2
    assert lines == [
        "asked 1 CPU, used 0.9; asked 100 MB, used 20 MB",
        "a quarter or less was used: ask for less memory, and pay less",
    ]


@pytest.mark.parametrize("answer", [Measured(), None])
async def test_samples_say_it_where_accounting_does_not(
    scene: Scene, seen: Observation, answer: Measured | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site without slurmdbd has no figures of the end."""
    scene.session.intervals = replace(scene.session.intervals, use_known_s=0.2)
    monkeypatch.setattr(scene.session.sampler, "last", lambda _: UseSample(cpu_s=80, memory_mb=90, run_s=80))
    lines = await said(scene.session, seen, Uses(answer), monkeypatch)
    assert lines == ["asked 1 CPU, used 1.0; asked 100 MB, used 90 MB (in its first 80 s)"]


@pytest.mark.parametrize("answer", [Measured(), RuntimeError("a bug"), None])
async def test_nothing_is_said_and_nothing_fails_where_the_use_is_not_known(
    scene: Scene, seen: Observation, answer: Measured | Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.session.intervals = replace(scene.session.intervals, use_known_s=0.2)
    async with asyncio.timeout(60.0):
        assert await said(scene.session, seen, Uses(answer), monkeypatch) == []


async def test_slurm_is_not_asked_about_a_short_run_or_a_job_without_a_log(
    scene: Scene, seen: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses = Uses(Measured(cpu_s=1))
    short = replace(seen, slurm=replace(LONG, ended_at=1_000_009))
    assert await said(scene.session, short, uses, monkeypatch) == []
    monkeypatch.setattr(scene.session.logs, "holds", lambda _: False)
    assert await said(scene.session, seen, uses, monkeypatch) == []
    assert uses.asked == []
