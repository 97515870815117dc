"""The steps of a carrier, from a definition to a job at Slurm, on a real chain and Slurm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.actions import ReportRunning, Wait
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import ABSENT, Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.session import Intervals
from deepgrid.sbatch import StoragePaths
from deepgrid.workflow import Definition
from tests.provider.scene import SMALL_JOB, Scene
from tests.slurm.support import Box, bash

FOR_EVER_S = 3600.0
WITHIN_S = 120.0


@pytest.fixture
def patient(scene: Scene) -> None:
    """Let steps wait forever, so that a test sees a waiting step on a machine of any speed."""
    scene.session.intervals = Intervals(slurm_answers_s=FOR_EVER_S)


@pytest.fixture
def closed_partition(box: Box, key: JobKey) -> Iterator[None]:
    """Close the partition after the claim: a cluster whose partition is closed claims no jobs."""
    partition = f"PartitionName={box.settings.partition}"
    box.slurm("scontrol", "update", partition, "State=DOWN")
    yield
    box.slurm("scontrol", "update", partition, "State=UP")


@pytest.mark.usefixtures("patient")
async def test_submit_returns_after_the_start_when_nodes_are_free(scene: Scene, key: JobKey) -> None:
    async with carry(scene.session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
        assert isinstance(decide(await carrier.observe()), ReportRunning)


@pytest.mark.usefixtures("patient")
async def test_a_claim_that_was_taken_back_meanwhile_is_not_submitted(
    scene: Scene, key: JobKey, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(await scene.session.chain.job(key.job_id), status=JobStatus.PENDING, claimed_at=0)

    async def taken_back(_: int) -> Job:
        return job

    monkeypatch.setattr(scene.session.chain, "job", taken_back)
    async with carry(scene.session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
    assert not box.folder(key).exists(), "0 minutes would be no limit"


@pytest.mark.usefixtures("patient", "closed_partition")
async def test_submit_makes_the_storage_folders_of_the_account_first(
    scene: Scene, key: JobKey, box: Box, tmp_path: Path
) -> None:
    for root in (paths := StoragePaths.under(str(tmp_path))).roots:
        Path(root).mkdir()
    scene.session.settings = replace(scene.session.settings, storage=paths)
    async with asyncio.timeout(WITHIN_S), carry(scene.session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
    uid = (box.folder(key) / "run").stat().st_uid
    assert [Path(f"{beginning}{uid}").stat().st_uid for beginning in paths.of_account] == [uid] * 3


@pytest.mark.usefixtures("patient", "closed_partition")
async def test_submit_returns_when_slurm_gives_a_reason_to_wait(scene: Scene, key: JobKey) -> None:
    async with asyncio.timeout(WITHIN_S), carry(scene.session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
        assert scene.session.monitor.observe(key).phase is Phase.QUEUED
        assert isinstance(decide(await carrier.observe()), Wait)


async def test_submit_polls_until_the_job_is_placed(scene: Scene, key: JobKey, monkeypatch: pytest.MonkeyPatch) -> None:
    new, noticed = (SlurmJob(Phase.QUEUED, 5, "PENDING", reason=reason) for reason in ("", "None"))
    sights = iter([ABSENT, new, noticed, SlurmJob(Phase.RUNNING, 5, "RUNNING"), after := object()])

    async def changed(*_: object, **__: object) -> object:
        return next(sights)

    monkeypatch.setattr(scene.session.monitor, "changed", changed)
    async with carry(scene.session, key) as carrier:
        await carrier.submit(bash("sleep 600"))
    assert next(sights) is after


@pytest.mark.parametrize("logging", [True, False])
async def test_only_jobs_with_logging_have_a_log(
    scene: Scene, key: JobKey, logging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = Definition.model_validate(
        {
            "enableLogging": logging,
            "resources": {
                "tasks": SMALL_JOB.ntasks, "cpusPerTask": SMALL_JOB.cpus_per_task,
                "memPerCpu": SMALL_JOB.mem_per_cpu_mb, "gpus": SMALL_JOB.gpus,
            },
            "steps": [{"run": {"command": "sleep 600"}}],
        }
    )  # fmt: skip
    followed: list[JobKey] = []

    async def fetch(*_: object) -> Definition:  # the services are not there
        return definition

    monkeypatch.setattr(scene.session.services, "fetch_definition", fetch)
    monkeypatch.setattr(scene.session.logs, "follow", followed.append)
    async with carry(scene.session, key) as carrier:
        script = await carrier.fetch_script()
        assert script is not None
        await carrier.submit(script)
        async with asyncio.timeout(WITHIN_S):
            while not isinstance(decide(await carrier.observe()), ReportRunning):
                await asyncio.sleep(0.1)
        assert bool(followed) is logging
    async with carry(scene.session, key) as successor:  # it does not know whether the job has a log
        await successor.observe()
    assert key in followed
