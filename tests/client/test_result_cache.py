"""`cache=True`: an equal job that finished is returned in place of a new one, and nothing is locked."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, AsyncJob, ClientSettings, GridError, InputError
from deepgrid.client.engine.idempotency import key_lock
from deepgrid.client.engine.result_cache import LOG_ARRIVES_WITHIN_S, cache_key, check_cacheable, is_kept
from deepgrid.client.order import Terms, order_of
from deepgrid.lifecycle.states import JobStatus
from deepgrid.workflow import canonical
from deepgrid.workflow.models import ContainerRun
from tests.appending import push_log
from tests.cli.live import CREDIT, EXAMPLE
from tests.client.stage import Customer, Stage
from tests.waiting import until


async def ended(stage: Stage, job: AsyncJob, status: JobStatus) -> int:
    await stage.run(job)
    await stage.provider.writer.settle(job.id, status, 1, "", 0 if status is JobStatus.FINISHED else 256)
    return job.id


async def test_only_a_finished_equal_job_takes_the_place_of_a_new_one(
    grid: AsyncGrid, stage: Stage, customer: Customer, tmp_path: Path
) -> None:
    async def submit(workflow: object = EXAMPLE, **options: bool) -> AsyncJob:
        return await grid.submit(workflow, credits=100, **{"cache": True, **options})  # type: ignore[arg-type]

    failed = await submit()
    await ended(stage, failed, JobStatus.FAILED)
    waiting = await submit()
    assert (waiting.id, waiting.status) == (failed.id + 1, JobStatus.PENDING)
    beside = await submit()
    assert beside.id == waiting.id + 1  # the other one has not finished
    await ended(stage, beside, JobStatus.FINISHED)
    again = await submit()
    assert (again.id, again.status, again.cached, beside.cached) == (beside.id, JobStatus.FINISHED, True, False)
    assert [job.id async for job in grid.jobs()] == [beside.id, waiting.id, failed.id]
    shutil.copy(customer.key, tmp_path / "elsewhere")
    async with AsyncGrid(tmp_path / "elsewhere", customer.book) as elsewhere:
        assert (await elsewhere.submit(EXAMPLE, credits=100, cache=True)).id == beside.id
    other = await submit((await grid.workflow(EXAMPLE)).env(OTHER="1"))
    plain = await submit(cache=False)
    assert [other.id, plain.id] == [beside.id + 1, beside.id + 2]


async def test_the_result_of_a_retry_is_found(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, cache=True, retries=1)
    await stage.run(job)
    await stage.provider.writer.settle(job.id, JobStatus.FAILED, 1, "a node of the cluster failed", 0)
    waiting = asyncio.create_task(job.wait(timeout="120s"))
    await until(lambda: job.earlier_attempts and job.status.hot)
    await ended(stage, job, JobStatus.FINISHED)
    await waiting
    again = await grid.submit(EXAMPLE, credits=100, cache=True)
    assert (again.id, again.cached, await grid.jobs().count()) == (job.id, True, 2)


async def test_a_job_whose_only_result_was_its_log_is_run_again_without_it(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, cache=True)
    await ended(stage, job, JobStatus.FINISHED)
    connection = await grid._connect()
    order = order_of(await grid.workflow(EXAMPLE), 100 * CREDIT, None, Terms())
    recent = await connection.reads.job(job.id)
    old = replace(recent, ended_at=recent.ended_at - LOG_ARRIVES_WITHIN_S - 60)
    assert await is_kept(connection, order, recent), "the log may still arrive"
    assert not await is_kept(connection, order, old)
    await push_log(stage.provider.services, job.id, 0, b"one", final=True)
    assert await is_kept(connection, order, old)


async def test_different_jobs_do_not_wait_for_each_other(grid: AsyncGrid, customer: Customer) -> None:
    workflow = await grid.workflow(EXAMPLE)
    connection = await grid._connect()
    named = cache_key(connection)
    other = named.fingerprint(canonical(workflow.env(OTHER="1").definition))
    async with key_lock(named.folder, named.id, None), key_lock(named.folder, other, None):
        assert not (await grid.submit(EXAMPLE, credits=100, cache=True)).cached
        hasty = ClientSettings(key_wait_s=0.1)
        async with AsyncGrid(customer.key, customer.book, settings=hasty) as same:
            with pytest.raises(GridError, match="has not ended"):
                await same.submit(workflow.env(OTHER="1"), credits=100, cache=True)


async def test_a_key_and_the_cache_exclude_each_other(grid: AsyncGrid) -> None:
    with pytest.raises(InputError, match="by a key, or by cache"):
        await grid.submit(EXAMPLE, credits=100, key="one", cache=True)


DIGEST = "busybox@sha256:" + "ab" * 32
CONTAINER = {"run": {"command": "true", "container": {"image": DIGEST}}}
SENT = {"run": {"command": "true", "container": {"image": "/input/image.sif", "apptainer": True}}}
HOSTED = {"run": {"command": "true", "container": {"image": DIGEST, "deepsquareHosted": True}}}
CHANGEABLE = {
    "the image busybox@sha256": {"steps": [HOSTED]},
    "the input by http": {"input": {"http": {"url": "https://data.example/a"}}},
    "the input by s3": {"input": {"s3": {"bucketUrl": "s3://a"}}},
    "the output goes to a place of yours by s3": {"output": {"s3": {"bucketUrl": "s3://a"}}},
    "the image busybox:1.36": {"steps": [{"run": {"command": "true", "container": {"image": "busybox:1.36"}}}]},
    "the image x": {
        "steps": [CONTAINER, {"for": {"items": ["1"], "steps": [{"launch": {"container": {"image": "x"}}}]}}]
    },
    "the image y": {"steps": [{"finally": [{"steps": [{"run": {"container": {"image": "y"}}}]}]}]},
}


@pytest.mark.parametrize("image", [DIGEST, "ghcr.io/a/b:1.2@sha256:" + "0" * 64])
def test_an_image_may_have_the_digest_that_the_cache_asks_for(image: str) -> None:
    assert ContainerRun.model_validate({"image": image}).image == image


@pytest.mark.parametrize("what", CHANGEABLE)
def test_what_may_change_behind_its_name_is_refused(what: str) -> None:
    with pytest.raises(InputError, match=what) as refused:
        check_cacheable(json.dumps(CHANGEABLE[what]).encode())
    assert "or submit it without the cache" in (refused.value.next_step or "")


@pytest.mark.parametrize(
    "definition",
    [{"steps": [CONTAINER]}, {"input": {"job": 7}, "output": {"grid": {}}}, {"input": None}, {"steps": [SENT]}],
)
def test_what_cannot_change_is_accepted(definition: dict[str, object]) -> None:
    check_cacheable(json.dumps(definition).encode())
