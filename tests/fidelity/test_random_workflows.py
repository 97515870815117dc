"""Workflows composed at random run as the reference interpreter says: markers in order, variables, exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.composing import Composer, written
from tests.fidelity.conftest import ENROOT, RealSite
from tests.fidelity.reference import Interpreter, difference
from tests.sbatch.support import Bench, job, without_progress

SITE = "enableLogging: true\nresources: {tasks: 6, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"
JOB_ENV = {"V2": "job"}
CAUGHT: tuple[str, tuple[str, ...], dict[str, str], int] = ("caught", ("DEEPSQUARE_ERROR_CODE",), {}, 0)


def several(seeds: range, *, containers: bool = True) -> list[dict[str, Any]]:
    """Return many workflows as one. The status of each but the last is caught and printed; the last ends the job."""
    told = {"command": 'echo "caught DEEPSQUARE_ERROR_CODE=$DEEPSQUARE_ERROR_CODE"', "program": CAUGHT}
    *first, last = (Composer(seed, containers=containers).workflow() for seed in seeds)
    return [*({"steps": one, "catch": [{"run": told}]} for one in first), *last]


def judge(seeds: range, steps: list[dict[str, Any]], status: int, found: list[str]) -> None:
    wanted, tree = Interpreter(JOB_ENV).run(steps)
    marks = [line for line in found if line.startswith(("m", "caught"))]
    assert (status, difference(marks, tree)) == (wanted, ""), f"seeds {seeds}: {written(steps)}"


@pytest.mark.parametrize("first", [0, 3])
def test_random_workflows_with_a_recorder(bench: Bench, first: int) -> None:
    seeds = range(first, first + 3)
    steps = several(seeds, containers=False)
    print(f"seeds {seeds}")
    outcome = bench.run(job(f" {written(steps)}", env='[{key: V2, value: "job"}]'))
    judge(seeds, steps, outcome.status, without_progress(outcome.output))


async def run_on_slurm(site: RealSite, seeds: range) -> None:
    programs = Path(site.storage.world_tmp) / "programs"
    programs.mkdir(mode=0o755, exist_ok=True)
    (programs / "enroot").write_text(ENROOT)
    (programs / "enroot").chmod(0o755)
    steps = several(seeds)
    print(f"seeds {seeds}")
    text = f'env: [{{key: V2, value: "job"}}]\nsteps: {written(steps)}\n'
    status, found = await site.run(text, header=SITE, programs=programs)
    judge(seeds, steps, status, found)


@pytest.mark.long
@pytest.mark.situation(
    "steps", "20 workflows composed at random", "a reference interpreter gives the same markers, variables and status"
)
@pytest.mark.parametrize("first", range(1000, 1020, 5))
async def test_twenty_random_workflows(site: RealSite, first: int) -> None:
    await run_on_slurm(site, range(first, first + 5))


@pytest.mark.deep
@pytest.mark.parametrize("first", range(2000, 2200, 5))
async def test_two_hundred_random_workflows(site: RealSite, first: int) -> None:
    await run_on_slurm(site, range(first, first + 5))
