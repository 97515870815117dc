"""`./run bench supervisor`: compares the rate of one supervisor with a bare loop of `sbatch` on the same cluster.

First, trivial jobs per second from claim to settlement, each with its Prefect run, and the CPU of each process.
Then many jobs wait in Slurm: the cost of the supervisor meanwhile, compared with a tenth of the jobs, and the time
from the end of a job to its settlement, on a chain with one block per second.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.bench.whole_grid import MeasuredGrid, measured_grid

CLUSTER = "alpha"
ONE_THREAD = ("prefect-server", f"supervisor-{CLUSTER}")
TRIVIAL = 300
FEW, MANY = 50, 500
WATCHED_S = 60.0
ENDS = 120
JOB_S = 2


@dataclass(frozen=True)
class Idle:
    """The cost of a supervisor while jobs wait: share of one CPU, resident MB, SSH commands per minute."""

    jobs: int
    cpu_share: float
    memory_mb: float
    commands_per_min: float


def assigned(job: Job) -> bool:
    return job.status is JobStatus.META_SCHEDULED


async def bare_loop(here: MeasuredGrid) -> tuple[float, float]:
    """Return jobs per second that a loop of `sbatch` submits, and jobs per second until the last one has ended."""

    def submit() -> None:
        for _ in range(TRIVIAL):
            here.slurm("sbatch", "--parsable", "-n1", "--mem-per-cpu=50", "--output=/dev/null", "--wrap=true")

    began = time.monotonic()
    await asyncio.to_thread(submit)
    submitted = time.monotonic()
    await here.until_slurm(lambda count: count == 0)
    return TRIVIAL / (submitted - began), TRIVIAL / (time.monotonic() - began)


async def claimed_to_settled(here: MeasuredGrid) -> tuple[float, dict[str, float]]:
    """Return jobs per second from the first claim to the last settlement, and CPU ms per job of each process."""
    await here.claiming(active=False)
    jobs = await here.order("true", TRIVIAL)
    await here.until(jobs, assigned)
    before = here.cpu_s()
    await here.claiming(active=True)
    done = await here.until(jobs, lambda job: job.status.cold)
    after = here.cpu_s()
    wrong = [job for job in done if job.status is not JobStatus.FINISHED]
    assert not wrong, wrong[0]
    seconds = max(job.ended_at for job in done) - min(job.claimed_at for job in done)
    return TRIVIAL / seconds, {name: 1000 * (after[name] - before.get(name, 0.0)) / TRIVIAL for name in after}


async def waiting(here: MeasuredGrid, jobs: int) -> Idle:
    """Return the cost of the supervisor over one minute while `jobs` jobs wait in Slurm."""
    await here.until_slurm(lambda count: count >= jobs, "-t", "PD")
    name = f"supervisor-{CLUSTER}"
    commands, cpu_s, began = await ssh_commands(here), here.cpu_s()[name], time.monotonic()
    await asyncio.sleep(WATCHED_S)
    seconds = time.monotonic() - began
    return Idle(
        jobs,
        (here.cpu_s()[name] - cpu_s) / seconds,
        here.memory_mb(name),
        60 * (await ssh_commands(here) - commands) / seconds,
    )


async def ssh_commands(here: MeasuredGrid) -> float:
    """Return the number of SSH commands of the supervisor so far, from its metrics."""
    port = here.grid.ports.port(f"supervisor-{CLUSTER}")
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"http://127.0.0.1:{port}/metrics")).raise_for_status().text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "deepgrid_ssh_commands_total"
    )


async def end_to_settled(here: MeasuredGrid, jobs: list[int]) -> list[float]:
    """Return the seconds from a job's end in Slurm to the block of its settlement, for the first jobs that end.

    Both times are in whole seconds.
    """
    done: list[Job] = []
    while len(done) < ENDS:
        await asyncio.sleep(1)
        done = [job for job in await here.customer.chain.jobs(jobs) if job.status.cold]
    sacct = ("sacct", "-n", "-P", "-X", "-a", "-S", "now-1days", "-o", "JobName,End")
    listing = here.slurm("env", "SLURM_TIME_FORMAT=%s", *sacct)
    ends = dict(line.split("|") for line in listing.splitlines())
    return [job.ended_at - int(ends[f"dg-{job.id}"]) for job in done]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def show_rates(console: Console, rate: float, loop_rate: float, through_rate: float) -> None:
    table = Table("", "jobs/s", "ratio", title=f"{TRIVIAL} trivial jobs")
    table.add_row("supervisor, claim to settlement", f"{rate:.2f}", f"{rate / loop_rate:.3f}")
    table.add_row("bare loop of sbatch, submission", f"{loop_rate:.2f}", "1")
    table.add_row("bare loop of sbatch, until all have ended", f"{through_rate:.2f}", f"{through_rate / loop_rate:.3f}")
    console.print(table)


def show_costs(console: Console, rate: float, cpu_ms: dict[str, float]) -> None:
    """Show the CPU time per job of each process.

    Prefect's server and a supervisor compute in one thread each, so their times bound the rate.
    """
    table = Table("process", "CPU ms per job", "jobs/s it allows", title="Where the time goes")
    for name, spent_ms in sorted(cpu_ms.items(), key=lambda item: -item[1])[:10]:
        table.add_row(name, f"{spent_ms:.0f}", f"{1000 / spent_ms:.1f}" if name in ONE_THREAD else "")
    total_ms = sum(cpu_ms.values())
    table.add_row(
        "all", f"{total_ms:.0f}", f"{os.cpu_count() or 1} CPUs: {1000 * (os.cpu_count() or 1) / total_ms:.1f}"
    )
    console.print(table)
    console.print(
        f"Meanwhile the grid had {rate * total_ms / 1000:.1f} CPUs; this machine's load is {os.getloadavg()[0]:.1f}."
    )


def show_waiting(console: Console, *costs: Idle) -> None:
    table = Table("jobs waiting", "CPU share", "memory, MB", "SSH commands/min", title="While jobs wait in Slurm")
    for one in costs:
        table.add_row(str(one.jobs), f"{one.cpu_share:.3f}", f"{one.memory_mb:.0f}", f"{one.commands_per_min:.0f}")
    console.print(table)


async def settling(here: MeasuredGrid) -> tuple[Idle, Idle, list[float]]:
    """Return the costs while few and many jobs wait in Slurm, and the seconds from jobs' ends to settlements."""
    with here.no_nodes():
        few = await here.order(f"sleep {JOB_S}", FEW)
        costs_few = await waiting(here, FEW)
        jobs = few + await here.order(f"sleep {JOB_S}", MANY - FEW)
        costs_many = await waiting(here, MANY)
    return costs_few, costs_many, await end_to_settled(here, jobs)


async def measure() -> None:
    console = Console(width=100)
    async with measured_grid(CLUSTER) as here:
        loop_rate, through_rate = await bare_loop(here)
        rate, cpu_ms = await claimed_to_settled(here)
        show_rates(console, rate, loop_rate, through_rate)
        show_costs(console, rate, cpu_ms)
        few, many, delays = await settling(here)
    show_waiting(console, few, many)
    p50, p99 = statistics.median(delays), quantile(delays, 0.99)
    console.print(f"From a job's end to its settlement, {len(delays)} jobs: p50 {p50:.1f} s, p99 {p99:.1f} s")
    figures = {
        "bench": "supervisor", "ratio": round(rate / loop_rate, 4), "ratio_ended": round(rate / through_rate, 3),
        "jobs_per_s": round(rate, 2), "sbatch_per_s": round(loop_rate, 2), "cpu_ms": round(sum(cpu_ms.values())),
        "settle_p50_s": p50, "settle_p99_s": p99, "ssh_commands_per_min": round(many.commands_per_min, 1),
        "ssh_commands_per_min_few": round(few.commands_per_min, 1),
        "rss_mb_500": round(many.memory_mb), "cpu_share_500": round(many.cpu_share, 3),
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(measure())
