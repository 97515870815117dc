"""Earnings and capacity in use as metrics: counted once per job that ended, from the jobs and offers that were seen."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.lifecycle.job import Hardware, Job, JobDefinition, Prices, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.observability.metrics import Metrics
from deepgrid.operator.operator_metrics import OperatorMetrics
from tests.billing.histories import CREDIT, ME, History, Plan

S = JobStatus
ASKED = JobDefinition(gpus=1, mem_per_cpu_mb=500, cpus_per_task=2, ntasks=3, definition_hash="")
NODES = Hardware((2, 2), (8, 8), (16000, 16000))


def job(status: JobStatus, cost: int = 0) -> Job:
    made = History()
    made.add(Plan(end=S.RUNNING, asked=ASKED))
    return replace(made.jobs[1], status=status, final_cost_wei=cost)


def value(metrics: Metrics | OperatorMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_job_is_earned_once_and_only_by_its_provider() -> None:
    metrics, ended = Metrics(), job(S.FINISHED, 10 * CREDIT)
    metrics.saw([job(S.RUNNING)], ME, 0)
    metrics.saw([ended], ME, 0)
    metrics.saw([ended], ME, 0)
    metrics.saw([replace(ended, id=2)], ME, 0)  # never seen hot: another process counted it
    assert (value(metrics, "deepgrid_paid_credits_total"), value(metrics, "deepgrid_cut_credits_total")) == (8, 2)


def test_a_job_that_was_given_back_earns_nothing() -> None:
    metrics = Metrics()
    metrics.saw([job(S.SCHEDULED)], ME, 0)
    metrics.saw([replace(job(S.FINISHED, CREDIT), provider="0xElse")], ME, 0)
    assert value(metrics, "deepgrid_paid_credits_total") == 0


def test_running_jobs_use_capacity_and_offers_in_force_give_it() -> None:
    metrics = Metrics()
    metrics.saw([job(S.RUNNING), replace(job(S.SCHEDULED), id=2)], ME, 0)
    used = [value(metrics, "deepgrid_used_capacity", resource=one) for one in ("cpus", "mem_mb", "gpus")]
    assert used == [6, 3000, 1]
    office = OperatorMetrics()
    offered = Provider(ME, NODES, Prices(1, 1, 1), (), approved=True, banned=False)
    office.saw_providers([offered, replace(offered, banned=True)])
    given = [value(office, "deepgrid_operator_offered_capacity", resource=one) for one in ("cpus", "mem_mb", "gpus")]
    assert given == [16, 32000, 4]
