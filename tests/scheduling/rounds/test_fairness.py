"""Shares of customers, and the order in which customers are served."""

from __future__ import annotations

import pytest

from deepgrid.scheduling.market import Resources, Usage
from deepgrid.scheduling.rounds.fairness import FairShare
from tests.scheduling.markets import NOW, pending

GRID = Resources(100, 1000, 10)
DAY_S = 86_400


def order(*jobs: object, usage: Usage | None = None) -> list[int]:
    line = FairShare(usage or Usage(), GRID).line(jobs, NOW, 0.25)  # type: ignore[arg-type]
    return [job.id for job in line]


def test_the_dominant_resource_makes_the_share() -> None:
    usage = Usage(present={"0xa": Resources(10, 0, 6)}, past={"0xa": Resources(10, 0, 2)})
    share = FairShare(usage, GRID).share("0xa")
    assert share.value == pytest.approx(0.4)
    assert share.resource == "GPUs"


def test_customers_take_turns() -> None:
    mine = [pending(n, customer="0xa", age_s=100) for n in (1, 2, 3)]
    assert order(*mine, pending(4, customer="0xb"), pending(5, customer="0xb")) == [1, 4, 2, 5, 3]


def test_large_jobs_take_longer_turns() -> None:
    large = [pending(n, customer="0xa", ntasks=2, age_s=1) for n in (1, 2)]
    small = [pending(n, customer="0xb") for n in (3, 4, 5, 6)]
    assert order(*large, *small) == [1, 3, 4, 2, 5, 6]


def test_who_used_less_comes_first() -> None:
    usage = Usage(past={"0xa": Resources(50, 0, 0)})
    assert order(pending(1, customer="0xa", age_s=100), pending(2, customer="0xb"), usage=usage) == [2, 1]


def test_the_oldest_job_of_a_customer_gains_with_every_day() -> None:
    usage = Usage(past={"0xa": Resources(100, 0, 0)}, present={"0xa": Resources(100, 0, 0)})
    fresh = [pending(n, customer=f"0x{n}") for n in range(10, 20)]
    old = [pending(n, customer="0xa", age_s=5 * DAY_S) for n in (1, 2, 3)]
    assert order(*old, *fresh, usage=usage) == [1, *range(10, 20), 2, 3]
