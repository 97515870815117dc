"""The operator's memory of jobs: who gave them back, how reliable providers are, how good estimates were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.job_memory import JobMemory
from deepgrid.operator.operator_metrics import OperatorMetrics
from deepgrid.operator.store import OperatorStore
from deepgrid.scheduling.market import Reliability, SchedulerSettings
from tests.services.support import MemoryChain

S = JobStatus
PROVIDER, OTHER = "0x" + "aa" * 20, "0x" + "bb" * 20
DAY_S = 86_400.0


class Desk:
    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.store = OperatorStore(folder / "rounds.sqlite")
        self.metrics = OperatorMetrics()
        self.memory = JobMemory(self.store, self.metrics, SchedulerSettings(half_life_s=DAY_S), lambda: self.now)

    def backs(self, job_id: int = 1) -> list[tuple[str, str | None]]:
        return [(one.provider, one.reason) for one in self.memory.given_back(job_id)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def job(status: JobStatus, provider: str | None = None, refuser: str | None = None, job_id: int = 1) -> Job:
    changes = {"provider": provider, "last_refuser": refuser, "started_at": 500 if status is S.RUNNING else 0}
    return replace(MemoryChain().put(job_id, "0" * 64, status), **changes)  # type: ignore[arg-type]


def test_each_return_counts_once_and_a_second_one_of_the_same_provider_counts_again(desk: Desk) -> None:
    back = job(S.PENDING, refuser=PROVIDER)
    for seen in (job(S.PENDING), job(S.META_SCHEDULED, PROVIDER), back, back):
        desk.memory.note([seen])
    assert desk.backs() == [(PROVIDER, None)]
    desk.memory.took_back(1, PROVIDER, "did not claim it")
    desk.memory.note([job(S.META_SCHEDULED, PROVIDER, PROVIDER)])
    desk.memory.note([back])
    assert desk.backs() == [(PROVIDER, None), (PROVIDER, "did not claim it")]
    assert desk.memory.record(PROVIDER) == Reliability(refused=1, late=1)


def test_a_restart_remembers_and_forgets_jobs_that_are_over(desk: Desk, tmp_path: Path) -> None:
    back = job(S.PENDING, refuser=PROVIDER)
    desk.memory.note([back, job(S.PENDING, refuser=OTHER, job_id=2)])
    again = Desk(tmp_path)
    again.memory.restart([back])
    again.memory.note([back])
    assert again.backs() == [(PROVIDER, None)]
    assert again.backs(2) == []
    again.memory.note([job(S.CANCELLED)])
    assert (again.backs(), again.memory.hot, again.store.given_back()) == ([], {}, {})


def test_faults_decay_and_service_counts(desk: Desk) -> None:
    for number, end in enumerate((S.FINISHED, S.FAILED, S.PANICKED), 1):
        desk.memory.note([job(S.RUNNING, PROVIDER, job_id=number)])
        desk.memory.note([job(end, PROVIDER, job_id=number)])
    assert desk.memory.record(PROVIDER) == Reliability(served=2, panicked=1)
    desk.now += DAY_S
    assert desk.memory.record(PROVIDER) == Reliability(served=1, panicked=0.5)


def test_the_error_of_an_estimate_is_measured_once(desk: Desk) -> None:
    desk.memory.note([job(S.META_SCHEDULED, PROVIDER)])
    desk.memory.expect_start(1, 460)
    for _ in range(2):
        desk.memory.note([job(S.RUNNING, PROVIDER)])
    assert desk.metrics.errors_s == [40]
    buckets = [("30.0", 0), ("60.0", 1), ("+Inf", 1)]
    for limit, count in buckets:
        found = desk.metrics.registry.get_sample_value("deepgrid_start_estimate_error_bucket", {"le": limit})
        assert found == count


def test_a_store_of_another_chain_is_emptied(desk: Desk) -> None:
    desk.store.belong_to("one")
    desk.store.add_notices([(1, "waiting", "full")])
    desk.store.belong_to("one")
    assert len(desk.store.due_notices(10)) == 1
    desk.store.belong_to("two")
    assert desk.store.due_notices(10) == []
