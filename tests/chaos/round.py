"""One round: jobs of mixed kinds, one or several faults in turn, repair, and a verdict on every job."""

from __future__ import annotations

import asyncio
import random
import shlex
import time
from collections.abc import Callable, Sequence

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.chaos.batch import Batch
from tests.chaos.fault import Allowed, Fault
from tests.chaos.judge import judge, outcomes
from tests.chaos.kinds import KINDS
from tests.chaos.table import Row
from tests.chaos.world import World

COLD_WITHIN_S = 180.0
STAGES = (JobStatus.PENDING, JobStatus.SCHEDULED, JobStatus.RUNNING)


class Violated(AssertionError):
    """An invariant does not hold after a round."""


async def run_round(
    world: World, faults: Sequence[Fault], seed: int, record: Callable[[Row], None], *,
    jobs_per_fault: int = 4, long: bool = False,
) -> None:  # fmt: skip
    """Inject the faults one after another, with jobs in flight before and during each of them.

    Raises Violated with all violated invariants and the command that repeats the round.
    """
    rng = random.Random(f"{seed}:{','.join(fault.name for fault in faults)}")
    allows = frozenset(one for fault in faults for one in fault.allows)
    struck: dict[str, tuple[list[int], float]] = {}
    wrong: list[str] = []
    async with Batch(world, rng, anywhere=Allowed.REFUSED in allows) as batch:
        try:
            last = await batch.submit(mixed(rng, jobs_per_fault, (), long=long))
            for place, fault in enumerate(faults, 1):
                lengthy = long and 2 * place <= len(
                    faults
                )  # other tasks continue, and the end of the round does not wait for this
                struck[fault.name] = await _strike(world, batch, fault, rng, last, jobs_per_fault, long=lengthy)
                last = struck[fault.name][0][-jobs_per_fault:]
            await batch.end(max(COLD_WITHIN_S, *(fault.cold_within_s for fault in faults)))
            wrong = await judge(world, batch, allows)
        except (AssertionError, TimeoutError, GridError) as error:
            wrong = [f"{type(error).__name__}: {error}"]
        finally:
            _heal(world)
            await batch.leave(COLD_WITHIN_S)
    for name, (job_ids, seconds) in struck.items():
        record(Row(name, outcomes(batch, job_ids), seconds, len(wrong)))
    if wrong:
        raise Violated("\n".join([*wrong, "", f"repeat it with: {command(faults, seed, jobs_per_fault, long=long)}"]))


def command(faults: Sequence[Fault], seed: int, jobs_per_fault: int, *, long: bool) -> str:
    """Return the command that repeats the round."""
    words = [".venv/bin/python", "-m", "tests.chaos", "--seed", str(seed), "--jobs", str(jobs_per_fault)]
    words += ["--long"] * long
    return shlex.join([*words, *(word for fault in faults for word in ("--fault", fault.name))])


def mixed(rng: random.Random, count: int, needs: Sequence[str], *, long: bool) -> list[str]:
    """Return the kinds of `count` jobs, including the needed ones."""
    usual = [kind for kind in KINDS.values() if long or not kind.long]
    drawn = rng.choices(usual, weights=[kind.weight for kind in usual], k=max(0, count - len(needs)))
    names = [*needs, *(kind.name for kind in drawn)]
    rng.shuffle(names)
    return names


async def _strike(
    world: World, batch: Batch, fault: Fault, rng: random.Random, last: Sequence[int], count: int, *, long: bool
) -> tuple[list[int], float]:
    """Wait until the jobs `last` reach a stage, and inject the fault. Returns the affected jobs and the duration."""
    stage = rng.choice(STAGES)
    if not fault.awaited:
        await batch.until(lambda job: _has_come_to(job, stage), last)
    began = time.monotonic()
    felt = batch.hot()
    batch.open()
    async with fault.inject(world, rng):
        felt += await batch.submit(mixed(rng, count, fault.needs, long=long))
    return felt, time.monotonic() - began


def _has_come_to(job: Job, stage: JobStatus) -> bool:
    return job.status >= stage


def _heal(world: World) -> None:
    """Repair everything, so that leftovers of a failed fault do not fail the next round."""
    world.supervisor.disarm()
    world.supervisor.start()


async def pause(rng: random.Random, most_s: float) -> None:
    """Wait while the fault lasts. The duration is part of the fault."""
    await asyncio.sleep(rng.uniform(0, most_s))
