"""The supervisor's own batch jobs: one per name, with complete output, and removed afterwards."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.errors import InputError, SlurmError
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.batch import BatchJobs, BatchSettings
from tests.slurm.support import Box

NAME = "deepgrid-benchmark-unit-test"
ONE = ["--ntasks=1", "--nodes=1"]
PATIENCE_S = 60


@pytest.fixture
async def batch(cluster: Cluster) -> AsyncIterator[BatchJobs]:
    yield cluster.batch
    await cluster.batch.remove(NAME)


def folder(box: Box) -> Path:
    return Path(box.settings.grid_root) / "batch" / NAME


def queued(box: Box) -> list[str]:
    return box.slurm("squeue", "-h", "-a", "-n", NAME, "-o", "%A").split()


async def none_queued(box: Box) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while queued(box):
            await asyncio.sleep(0.1)


async def test_a_job_runs_as_the_job_account_and_its_output_comes_back_whole(box: Box, batch: BatchJobs) -> None:
    script = "#!/bin/bash\nid -un\necho 'it'\"'\"'s $HOME'\necho aside >&2\nseq 20000"
    output = await batch.run(NAME, script, ONE, limit_minutes=2, wait_minutes=2)
    lines = output.splitlines()
    assert lines[:3] == [box.settings.job_account or box.settings.user, "it's $HOME", "aside"]
    assert lines[3:] == [str(n) for n in range(1, 20001)]
    assert not folder(box).exists()


async def test_the_error_of_a_failed_job_contains_its_last_lines(batch: BatchJobs) -> None:
    with pytest.raises(SlurmError, match=r"ended FAILED: no such luck\."):
        await batch.run(
            NAME, "#!/bin/bash\necho no such luck.\necho -----\nexit 3", ONE, limit_minutes=2, wait_minutes=2
        )


async def test_a_refusal_of_slurm_is_an_error_with_its_reason(batch: BatchJobs) -> None:
    with pytest.raises(SlurmError, match="Slurm refused") as refusal:
        await batch.run(NAME, "#!/bin/bash", [*ONE, "--mem=1T"], limit_minutes=2, wait_minutes=2)
    assert not refusal.value.transient


async def test_a_second_job_of_the_name_ends_the_first(box: Box, batch: BatchJobs) -> None:
    first = await batch.submit(NAME, "#!/bin/bash\nsleep 600", ONE)
    output = await batch.run(NAME, "#!/bin/bash\necho second", ONE, limit_minutes=2, wait_minutes=2)
    assert output == "second\n"
    await none_queued(box)
    assert "CANCELLED" in box.slurm("scontrol", "show", "job", str(first))


async def test_the_last_lines_of_an_earlier_job_are_not_in_the_output(box: Box, batch: BatchJobs) -> None:
    """A job that ends slowly may open its output file by path while the next job with this name exists."""
    first = await batch.submit(NAME, "#!/bin/bash\nsleep 600", ONE)
    (earlier,) = re.findall(r"StdOut=(\S+)", box.slurm("scontrol", "show", "job", str(first)))
    await batch.submit(NAME, "#!/bin/bash\necho second; sleep 600", ONE)
    if Path(earlier).exists():
        Path(earlier).write_text("last words\n")
    async with asyncio.timeout(PATIENCE_S):
        while "second" not in (output := await batch.output(NAME)):
            await asyncio.sleep(0.1)
    assert "last words" not in output


async def test_a_job_that_never_starts_times_out(box: Box, login: Login) -> None:
    batch = BatchJobs(login, box.settings, BatchSettings(end_grace_s=1.0))
    with pytest.raises(SlurmError, match="did not end within 0 minutes"):
        await batch.run(NAME, "#!/bin/bash", [*ONE, "--begin=now+1hour"], limit_minutes=0, wait_minutes=0)
    await none_queued(box)


async def test_a_cancelled_caller_ends_its_job(box: Box, batch: BatchJobs) -> None:
    waiter = asyncio.create_task(batch.run(NAME, "#!/bin/bash\nsleep 600", ONE, limit_minutes=20, wait_minutes=20))
    async with asyncio.timeout(PATIENCE_S):
        while not queued(box):
            await asyncio.sleep(0.1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await none_queued(box)
    assert not folder(box).exists()


@pytest.mark.parametrize("name", ["", "a b", "../jobs", "a;b"])
async def test_a_name_is_a_plain_word(batch: BatchJobs, name: str) -> None:
    with pytest.raises(InputError):
        await batch.submit(name, "#!/bin/bash", ONE)
