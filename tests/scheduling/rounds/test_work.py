"""The bound of a round's work, and the turns of customers at it."""

from __future__ import annotations

from deepgrid.lifecycle.job import Affinity, Job, Label
from deepgrid.scheduling.market import Market
from deepgrid.scheduling.rounds.candidates import asks_of, too_much
from deepgrid.scheduling.rounds.scheduler import Scheduler
from tests.scheduling.markets import NOW, pending, small


def demanding(job_id: int, customer: str = "0xa", age_s: int = 0) -> Job:
    """Return a job with three conditions that no other job has."""
    affinity = tuple(Affinity("a", "!=", f"{job_id}-{number}") for number in range(3))
    return pending(job_id, customer=customer, affinity=affinity, age_s=age_s)


def left(jobs: list[Job], most: int, known: tuple[Job, ...] = ()) -> list[int]:
    return sorted(too_much(jobs, {asks_of(job) for job in known}, most))


def test_customers_take_turns_with_their_oldest_jobs_first() -> None:
    mine = [demanding(number, age_s=100 + number) for number in (1, 2, 3)]
    other = demanding(4, "0xb")
    assert left([*mine, other], 16) == []
    assert left([*mine, other], 12) == [1]
    assert left([*mine, other], 8) == [1, 2]


def test_equal_jobs_are_compared_once_and_known_ones_cost_little() -> None:
    assert left([pending(number) for number in range(100)], 1) == []
    jobs = [demanding(number) for number in range(4)]
    assert left(jobs, 4, known=tuple(jobs)) == []


def test_a_job_that_fits_nowhere_is_compared_again_when_a_label_changes() -> None:
    scheduler, job = Scheduler(), pending(uses=(Label("zone", "eu"),))
    without, with_label = small("alpha"), small("alpha", labels=(Label("zone", "eu"),))
    for cluster, assigned in ((without, 0), (without, 0), (with_label, 1), (without, 0)):
        found = scheduler.round([job], Market([cluster], NOW))
        assert (len(found.assignments), len(found.waiting)) == (assigned, 1 - assigned)


def test_a_job_that_fits_nowhere_is_compared_again_when_its_terms_change() -> None:
    scheduler, market = Scheduler(), Market([small("alpha")], NOW)
    poor, rich = pending(locked_wei=1), pending()
    assert [len(scheduler.round([job], market).assignments) for job in (poor, poor, rich)] == [0, 0, 1]
