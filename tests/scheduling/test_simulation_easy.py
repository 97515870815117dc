"""EASY backfill in a simulated cluster: hand-worked cases, and reservations that are kept."""

from __future__ import annotations

from random import Random

import pytest

from deepgrid.lifecycle.job import Hardware, JobDefinition, Prices, Provider
from deepgrid.scheduling.fit import misfit
from tools.simulation.cluster import NodePool, Queued, SimulatedCluster

HARDWARE = Hardware((0, 0), (4, 4), (8_000, 8_000))


def cluster(hardware: Hardware = HARDWARE) -> SimulatedCluster:
    return SimulatedCluster(Provider("0xc", hardware, Prices(0, 1, 0), (), approved=True, banned=False))


def job(number: int, tasks: int, limit_s: int, cpus: int = 1, mem_mb: int = 0, gpus: int = 0) -> Queued:
    return Queued(number, JobDefinition(gpus, mem_mb, cpus, tasks, "0x"), limit_s)


def started(one: SimulatedCluster, now: int) -> list[int]:
    return [running.queued.job_id for running in one.start_jobs(now)]


def test_a_short_job_starts_before_a_wide_one_that_waits_and_a_long_one_does_not() -> None:
    one = cluster()
    for queued in (job(1, 6, 100), job(2, 8, 50), job(3, 2, 200), job(4, 2, 100)):
        one.submit(queued)
    assert started(one, 0) == [1, 4]  # job 2 starts at 100: job 3 would still run, job 4 not
    assert one.reservation is not None and (one.reservation.job_id, one.reservation.starts_at) == (2, 100)
    one.end(1)
    one.end(4)
    assert started(one, 100) == [2]
    one.end(2)
    assert started(one, 150) == [3]


def test_a_long_job_starts_on_nodes_that_the_reserved_job_does_not_need() -> None:
    one = cluster()
    for queued in (job(1, 5, 100), job(2, 6, 50), job(3, 2, 10_000), job(4, 1, 10_000)):
        one.submit(queued)
    assert started(one, 0) == [1, 3]  # at 100, job 2 takes 6 of 8 CPUs and job 3 the other 2; job 4 has no room
    one.end(1)
    assert started(one, 100) == [2]


def test_a_job_that_ends_early_lets_the_first_job_start_before_its_reservation() -> None:
    one = cluster()
    one.submit(job(1, 8, 1_000))
    one.submit(job(2, 1, 10))
    assert started(one, 0) == [1]
    assert one.reservation is not None and one.reservation.starts_at == 1_000
    one.end(1)
    assert started(one, 30) == [2]


def test_tasks_are_not_divided_and_memory_counts() -> None:
    one = cluster()
    one.submit(job(1, 1, 100, cpus=3))
    one.submit(job(2, 1, 100, cpus=2, mem_mb=3_000))  # 6,000 MB in parallel on the other node
    one.submit(job(3, 1, 100, cpus=2))  # 1 + 2 CPUs are free, on two nodes
    one.submit(job(4, 1, 100, cpus=2))
    assert started(one, 0) == [1, 2, 3]


def test_gpus_are_taken_from_nodes_that_host_tasks() -> None:
    pool = NodePool([4, 4, 4], [8_000] * 3, [0, 2, 2])
    placement = pool.place(JobDefinition(3, 0, 1, 2, "0x"))
    assert placement is not None and [(share.node, share.cpus, share.gpus) for share in placement] == [
        (1, 1, 2), (2, 1, 1),
    ]  # fmt: skip
    assert pool.place(JobDefinition(3, 0, 1, 1, "0x")) is None  # one task reaches the GPUs of one node
    plain = pool.place(JobDefinition(0, 0, 1, 2, "0x"))
    assert plain is not None and {share.node for share in plain} == {0}  # it keeps away from GPUs


def test_over_use_of_a_node_is_an_error() -> None:
    pool = NodePool([1], [100], [0])
    placement = pool.place(JobDefinition(0, 0, 1, 1, "0x"))
    assert placement is not None
    pool.take(placement)
    with pytest.raises(ValueError, match="over-used"):
        pool.take(placement)


@pytest.mark.parametrize("seed", range(20))
def test_no_first_job_starts_later_than_its_reservation(seed: int) -> None:
    random = Random(seed)
    hardware = Hardware((0, 1, 2), (4, 8, 8), (8_000, 8_000, 16_000))
    one, now = cluster(hardware), 0
    promised: dict[int, int] = {}
    ends: dict[int, int] = {}
    waiting = [queued for queued in (_random_job(random, n) for n in range(80)) if not misfit(queued.need, hardware)]
    while waiting or ends:
        if waiting and random.random() < 0.6:
            one.submit(waiting.pop())
        for number in [number for number, end in ends.items() if end <= now]:
            one.end(number)
            del ends[number]
        for running in one.start_jobs(now):
            number = running.queued.job_id
            assert now <= promised.get(number, now), "a job was delayed beyond its reservation"
            ends[number] = now + random.randint(1, running.queued.limit_s)
        if one.reservation is not None:
            promised.setdefault(one.reservation.job_id, one.reservation.starts_at)
        now += 1
    assert not one.queue and one.pool.cpus == [4, 8, 8] and one.pool.gpus == [0, 1, 2]


def _random_job(random: Random, number: int) -> Queued:
    return job(
        number, random.randint(1, 8), random.randint(1, 40), random.choice((1, 1, 2, 4)),
        random.choice((0, 500, 2_000)), random.choice((0, 0, 0, 1, 2)),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(50))
def test_a_free_cluster_places_exactly_the_jobs_that_fit_by_the_schedulers_rule(seed: int) -> None:
    random = Random(seed)
    nodes = random.randint(1, 4)
    hardware = Hardware(*(tuple(random.choice(few) for _ in range(nodes)) for few in ((0, 1, 4), (1, 4, 8), (1, 9))))
    for number in range(40):
        need = job(number, random.randint(1, 9), 1, random.randint(1, 4), random.choice((0, 1)), random.randint(0, 5))
        assert (NodePool.of(hardware).place(need.need) is None) == bool(misfit(need.need, hardware))
