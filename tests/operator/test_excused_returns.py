"""A job given back for a feature counts against the cluster only if its labels, or the job's, had named the feature."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.lifecycle.feature_labels import lacks
from deepgrid.lifecycle.job import Affinity, Job, Label
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.job_memory import JobMemory
from deepgrid.operator.operator_metrics import OperatorMetrics
from deepgrid.operator.session import OperatorSession
from deepgrid.operator.store import OperatorStore
from deepgrid.scheduling.market import Reliability, SchedulerSettings
from tests.services.support import MemoryChain

PROVIDER = "0x" + "aa" * 20
COUNTED = Reliability(refused=1)


class Session(OperatorSession):
    """A session whose services have one notice, and whose provider has these labels."""

    def __init__(self, folder: Path, reason: str, offered: tuple[Label, ...]) -> None:
        def memory_clock() -> float:
            return 1000.0

        self.memory = JobMemory(
            OperatorStore(folder / "rounds.sqlite"), OperatorMetrics(), SchedulerSettings(), memory_clock
        )
        notice: Any = SimpleNamespace(kind="refused", author=PROVIDER, text=reason)
        self.services: Any = SimpleNamespace(notices=lambda _: _answer([notice]))
        self.chain: Any = SimpleNamespace(provider=lambda _: _answer(SimpleNamespace(labels=offered)))


async def _answer(value: object) -> object:
    await asyncio.sleep(0)
    return value


def given_back(*asked: Affinity) -> Job:
    job = MemoryChain().put(1, "0" * 64, JobStatus.PENDING)
    return replace(job, last_refuser=PROVIDER, definition=replace(job.definition, uses=(), affinity=asked))


@pytest.mark.parametrize(
    ("reason", "asked", "offered", "record"),
    [
        (lacks(["containers"]), (), (), Reliability()),
        (lacks(["containers", "storage.s3"]), (Affinity("os", "==", "linux"),), (Label("os", "linux"),), Reliability()),
        (lacks(["containers"]), (Affinity("containers", "!=", "none"),), (), COUNTED),
        (lacks(["containers"]), (), (Label("containers", "apptainer"),), COUNTED),
        ("the disk is full", (), (), COUNTED),
        (f"sorry: {lacks(['containers'])}", (), (), COUNTED),
    ],
)
async def test_a_return_is_excused_when_nobody_named_the_feature(
    tmp_path: Path, reason: str, asked: tuple[Affinity, ...], offered: tuple[Label, ...], record: Reliability
) -> None:
    session, job = Session(tmp_path, reason, offered), given_back(*asked)
    session.memory.note([job])
    assert session.memory.record(PROVIDER) == COUNTED
    assert await session.refusals([job]) == {1: {PROVIDER: reason}}
    assert await session.refusals([job]) == {1: {PROVIDER: reason}}, "read once"
    assert session.memory.record(PROVIDER) == record
