"""A variable in Prefect says whether the cluster claims jobs, and why not. It changes only with its sentence."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.provider.session import ProviderSession
from deployments.provider import claiming_report
from deployments.provider.claiming_report import report_claiming
from tests.provider.scene import Scene
from tests.waiting import until

CLAIMS = "Yes: all nodes take jobs."


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that Prefect got, the newest one last. No deployment is paused."""
    sentences: list[str] = []

    async def keep(name: str, words: str) -> None:
        assert name == "deepgrid_claiming_unit"
        sentences.append(words)

    async def not_closed(_: ProviderSession) -> str:
        return ""

    monkeypatch.setattr(claiming_report, "_set", keep)
    monkeypatch.setattr(claiming_report, "why_closed", not_closed)
    return sentences


async def test_it_says_why_the_cluster_claims_nothing(
    scene: Scene, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[tuple[int, int] | SlurmUnreachable] = [(2, 2)]

    async def health() -> tuple[int, int]:
        if isinstance(answers[-1], SlurmUnreachable):
            raise answers[-1]
        return answers[-1]

    monkeypatch.setattr(scene.session.cluster, "health", health)
    reporting = asyncio.create_task(report_claiming(scene.session, check_every_s=0.05))
    try:
        await until(lambda: shown == ["No: the provider is not registered."])
        await scene.approve()
        await until(lambda: shown[-1] == CLAIMS)
        del shown[:-1]  # it may have waited for approval in between
        answers.append(SlurmUnreachable("Slurm does not answer: no controller."))
        await until(lambda: shown[1:] == ["No: Slurm does not answer: no controller."])
        answers.append((1, 2))
        await until(lambda: shown[2:] == ["Yes: 1 of 2 nodes take jobs."])
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
