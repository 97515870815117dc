"""The sampler of running jobs: few commands, longer and longer pauses, and no harm by a site that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from deepgrid.billing.use_samples import UseSample
from deepgrid.errors import ServiceError, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.provider.shared.use_sampler import SamplingSettings, UseSampler
from deepgrid.slurm.commands.step_uses import Steps
from deepgrid.slurm.commands.tres import StepUse

STARTED = 1_000_000
HOUR_S = 3600
RUNNING = SlurmJob(Phase.RUNNING, 7, "RUNNING", STARTED)


def key(job_id: int = 1) -> JobKey:
    return JobKey(31337, "0x" + "11" * 20, job_id, 3)


def steps(cpu_s: int, *names: str) -> Steps:
    use = StepUse(1000 * cpu_s, 90 * 2**20, 0, 0, None, None)
    return dict.fromkeys(names or ("batch",), use)


class Site:
    """A cluster and the services: jobs by claim, the answers of Slurm, and what was asked and sent."""

    def __init__(self, **settings: float) -> None:
        self.jobs: dict[JobKey, SlurmJob] = {key(): RUNNING}
        self.now = STARTED
        self.steps: dict[int, Steps] = {7: steps(20)}
        self.fault: Exception | None = None
        self.refusal: Exception | None = None
        self.asked: list[list[int]] = []
        self.sent: list[Mapping[JobKey, UseSample]] = []
        self.sampler = UseSampler(self, self, lambda: self.jobs, lambda: self.now, SamplingSettings(**settings))  # type: ignore[arg-type]

    async def running(self, ids: Collection[int]) -> dict[int, Steps]:
        self.asked.append(list(ids))
        if self.fault:
            raise self.fault
        return self.steps

    async def send_uses(self, samples: Mapping[JobKey, UseSample]) -> None:
        if self.refusal:
            raise self.refusal
        self.sent.append(samples)

    async def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            await self.sampler.sample()


async def test_samples_become_rarer_while_a_job_runs() -> None:
    site = Site()
    await site.pass_time(29)
    assert site.asked == [], "a short job costs nothing"
    await site.pass_time(1)
    assert site.sent == [{key(): UseSample(20, 90, 0, 0, run_s=30)}]
    await site.pass_time(HOUR_S - 30)
    in_first_hour = len(site.asked)
    assert 20 < in_first_hour < 40
    await site.pass_time(HOUR_S)
    assert len(site.asked) - in_first_hour <= 8


async def test_one_command_and_one_request_serve_all_jobs() -> None:
    site = Site()
    site.jobs = {key(number): replace(RUNNING, slurm_id=number) for number in range(1, 81)}
    site.steps = {number: steps(number) for number in range(1, 81)}
    await site.pass_time(30)
    assert [len(ids) for ids in site.asked] == [80]
    assert [len(samples) for samples in site.sent] == [80]


async def test_more_jobs_than_a_command_takes_are_asked_in_turn() -> None:
    site = Site(at_once=10)
    site.jobs = {key(number): replace(RUNNING, slurm_id=number) for number in range(1, 26)}
    site.steps = {number: steps(number) for number in range(1, 26)}
    site.now += 30
    for _ in range(3):
        await site.sampler.sample()
    assert sorted(slurm_id for ids in site.asked for slurm_id in ids) == list(range(1, 26))


async def test_a_site_that_does_not_answer_for_jobs_is_asked_more_and_more_rarely() -> None:
    """Slurm answers root, its own account, and the job's account. Another login gets nothing."""
    site = Site()
    site.steps = {}
    await site.pass_time(2 * HOUR_S)
    assert 5 < len(site.asked) < 20
    assert site.sent == []


async def test_steps_that_ended_still_count() -> None:
    site = Site()
    site.steps = {7: steps(20, "batch", "0")}
    await site.pass_time(30)
    site.steps = {7: steps(25, "batch")}
    await site.pass_time(30)
    assert [samples[key()].cpu_s for samples in site.sent] == [40, 45]


async def test_the_last_sample_is_there_until_the_claim_is_over() -> None:
    site = Site()
    await site.pass_time(30)
    site.jobs[key()] = replace(RUNNING, phase=Phase.ENDED)
    await site.pass_time(60)
    last = site.sampler.last(key())
    assert last is not None
    assert last.cpu_s == 20
    del site.jobs[key()]
    await site.pass_time(1)
    assert site.sampler.last(key()) is None
    assert len(site.asked) == 1


async def test_a_second_run_begins_again() -> None:
    site = Site()
    await site.pass_time(60)
    site.jobs[key()] = replace(RUNNING, started_at=site.now)
    site.steps = {7: steps(1)}
    await site.pass_time(30)
    assert [samples[key()].cpu_s for samples in site.sent][-1] == 1


@pytest.mark.parametrize("fault", [SlurmUnreachable("away"), ServiceError("away"), RuntimeError("a bug")])
async def test_no_fault_ends_the_samples(fault: Exception) -> None:
    site = Site(poll_s=0.01, first_s=0, longest_s=0, share=0)
    site.fault, site.now = fault, STARTED + 60
    async with asyncio.timeout(60), site.sampler:
        while len(site.asked) < 3:
            await asyncio.sleep(0.01)
        site.fault, site.refusal = None, fault
        while len(site.asked) < 6:
            await asyncio.sleep(0.01)
        site.refusal = None
        while not site.sent:
            await asyncio.sleep(0.01)
