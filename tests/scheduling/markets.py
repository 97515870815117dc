"""Generated markets from a seed: clusters that are all different, and jobs of many customers."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from deepgrid.lifecycle.job import Affinity, Hardware, Job, JobDefinition, Label, Prices, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.market import ClusterState, HotJob, Resources
from deepgrid.scheduling.speed import measured_speeds
from tests.lifecycle.support import JOB as CLAIMED_JOB

CREDIT = 10**18
NOW = 1_800_000_000
NODE_KINDS = ((0, 16, 64_000), (0, 64, 256_000), (0, 128, 512_000), (4, 64, 512_000), (8, 128, 1_024_000))
ZONES = ("eu", "us", "asia", "africa")


def provider(number: int, random: Random, most_nodes: int = 512) -> Provider:
    """Return a cluster of 1 to `most_nodes` nodes of one to three kinds, with its own prices and labels."""
    nodes = [
        (gpus, cpus + random.randrange(0, 8), mem + random.randrange(0, 4000))
        for gpus, cpus, mem in random.sample(NODE_KINDS, random.randint(1, 3))
    ]
    shares = [random.choice(nodes) for _ in range(random.randint(1, most_nodes))]
    gpus, cpus, mem = zip(*shares, strict=True)
    price = CREDIT // 1000 + random.randrange(CREDIT // 1000)
    labels = (
        Label("name", f"cluster{number}"), Label("zone", random.choice(ZONES)), Label("os", "linux"),
        Label("compute.gflops", f"{sum(cpus) * random.uniform(10, 40):.2f}"),
        Label("network.p2p.bw.mbps", f"{random.uniform(1000, 20000):.2f}"),
    )  # fmt: skip
    prices = Prices(20 * price + random.randrange(price), price, price // 10_000)
    return Provider(f"0x{number:040x}", Hardware(gpus, cpus, mem), prices, labels, approved=True, banned=False)


def clusters(count: int, seed: int = 0, *, load: float = 0.0, most_nodes: int = 512) -> list[ClusterState]:
    """Return clusters whose CPUs are busy to the share `load`, with jobs of one node each."""
    random = Random(seed)
    states = []
    for number in range(count):
        one = provider(number, random, most_nodes)
        busy = [
            HotJob(n, Resources(cpus, mem // cpus * cpus, gpus), random.randint(1, 600), JobStatus.RUNNING)
            for n, (gpus, cpus, mem) in enumerate(
                zip(one.hardware.gpus_per_node, one.hardware.cpus_per_node, one.hardware.mem_per_node_mb, strict=True)
            )
            if random.random() < load
        ]
        states.append(ClusterState(one, busy, speed=measured_speeds(one)))
    return states


def shapes(count: int, random: Random) -> list[JobDefinition]:
    """Return this number of different resource requests, some with conditions."""
    found: dict[tuple[int, ...], JobDefinition] = {}
    while len(found) < count:
        ntasks, cpus = random.choice((1, 1, 1, 2, 4, 8, 16, 32)), random.choice((1, 2, 4, 8, 16, 32))
        mem, gpus = random.randrange(100, 4000, 10), random.choice((0, 0, 0, 0, 1, 2, 4))
        affinity = (Affinity("zone", "!=", random.choice(ZONES)),) if random.random() < 0.2 else ()
        found[ntasks, cpus, mem, gpus] = JobDefinition(gpus, mem, cpus, ntasks, "h", affinity=affinity)
    return list(found.values())


def jobs(count: int, customers: int, different: int, seed: int = 0) -> list[Job]:
    """Pending jobs of `different` shapes, with credits for about 10 minutes to 10 hours."""
    random = Random(seed)
    kinds = shapes(different, random)
    blank = replace(CLAIMED_JOB, status=JobStatus.PENDING, provider=None, rate_wei_per_minute=0, granted_minutes=0)
    made = []
    for number in range(count):
        definition = kinds[number % different]
        cpus = definition.ntasks * definition.cpus_per_task
        per_minute = CREDIT // 500 * (cpus + 20 * definition.gpus + cpus * definition.mem_per_cpu_mb // 10_000)
        made.append(
            replace(
                blank, id=number + 1, customer=f"0xc{random.randrange(customers)}", definition=definition,
                locked_wei=per_minute * random.randint(10, 600), submitted_at=NOW - random.randrange(7200),
            )
        )  # fmt: skip
    return made


def small(
    name: str, *, nodes: int = 2, cpus: int = 4, mem: int = 4000, gpus: int = 0, price: int = CREDIT,
    labels: tuple[Label, ...] = (), busy: tuple[HotJob, ...] = (),
) -> ClusterState:  # fmt: skip
    """Return a cluster of equal nodes with a price only for CPUs, in wei per minute."""
    one = Provider(
        f"0x{name}", Hardware((gpus,) * nodes, (cpus,) * nodes, (mem,) * nodes), Prices(0, price, 0),
        (Label("name", name), *labels), approved=True, banned=False,
    )  # fmt: skip
    return ClusterState(one, busy)


def hot(cpus: int, minutes: int, status: JobStatus = JobStatus.RUNNING, *, job_id: int = 0) -> HotJob:
    """Return a hot job of one task."""
    return HotJob(job_id, Resources(cpus, cpus, 0), minutes, status)


def pending(
    number: int = 1, *, customer: str = "0xc", cpus: int = 1, ntasks: int = 1, age_s: int = 0, **more: Any
) -> Job:
    """Return a pending job with credits for 100 minutes of its CPUs at 1 credit, or other fields."""
    asked = {one: more.pop(one) for one in ("gpus", "mem_per_cpu_mb", "uses", "affinity") if one in more}
    one_cpu = JobDefinition(gpus=0, mem_per_cpu_mb=1, cpus_per_task=1, ntasks=1, definition_hash="h")
    fields: dict[str, Any] = {"locked_wei": 100 * CREDIT * cpus * ntasks, **more}
    return replace(
        CLAIMED_JOB, id=number, status=JobStatus.PENDING, provider=None, customer=customer,
        definition=replace(one_cpu, cpus_per_task=cpus, ntasks=ntasks, **asked), submitted_at=NOW - age_s, **fields,
    )  # fmt: skip
