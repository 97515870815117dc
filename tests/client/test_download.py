"""`download` of a job: the places of its output, and the parties that know them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from deepgrid.client import AsyncGrid, NoOutput
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer
from tests.sbatch.bucket import KEYS, Bucket
from tests.sbatch.bucket import bucket as bucket
from tests.sbatch.bucket import s3_server as s3_server

pytestmark = pytest.mark.usefixtures("provider")  # its cluster has S3


def workflow(output: dict[str, Any]) -> dict[str, Any]:
    """Return a workflow with this output."""
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 10, "gpus": 0}
    return {"resources": resources, "output": output, "steps": [{"run": {"command": "hostname"}}]}


async def test_a_job_that_was_submitted_here_knows_its_output(grid: AsyncGrid, bucket: Bucket, tmp_path: Path) -> None:
    job = await grid.submit(workflow(bucket.at("/frames")), credits=100)
    bucket.put("frames/1.png", b"one")
    bucket.put("frames/2.txt", b"two")
    assert await job.download(tmp_path / "a", only="*.png") == [tmp_path / "a" / "1.png"]
    again = await grid.job(job.id)
    assert len(await again.download(str(tmp_path / "b"))) == 2
    for shown in (job, job._connection, grid, job._repr_html_()):
        assert KEYS["secretAccessKey"] not in repr(shown)


async def test_another_program_downloads_and_another_machine_passes_the_workflow(
    grid: AsyncGrid, customer: Customer, bucket: Bucket, tmp_path: Path
) -> None:
    job = await grid.submit(workflow(bucket.at("/frames")), credits=100)
    bucket.put("frames/1.png", b"one")
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(workflow(bucket.at("/frames"))))
    async with AsyncGrid(customer.key, customer.book) as other:
        job = await other.job(job.id)
        assert [path.read_bytes() for path in await job.download(tmp_path / "here")] == [b"one"]
    shutil.rmtree(customer.key.with_name(customer.key.name + ".jobs"))
    async with AsyncGrid(customer.key, customer.book) as elsewhere:
        job = await elsewhere.job(job.id)
        with pytest.raises(NoOutput, match=r"another machine, and its output\.s3\.secretAccessKey") as caught:
            await job.download(tmp_path)
        assert "workflow=FILE" in caught.value.next_step
        assert [path.read_bytes() for path in await job.download(tmp_path / "to", workflow=file)] == [b"one"]


async def test_a_workflow_without_output_has_nothing_to_download(grid: AsyncGrid, tmp_path: Path) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    with pytest.raises(NoOutput, match="names no output"):
        await job.download(tmp_path)
