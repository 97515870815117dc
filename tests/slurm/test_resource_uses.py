"""What real jobs used: one that burns one of its two CPUs and holds a known amount of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from deepgrid.billing.resource_use import Measured, resource_use
from deepgrid.billing.use_samples import UseHistory, UseSample
from deepgrid.client.display.use_graph import use_rows
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.provider.shared.use_sampler import SamplingSettings, UseSampler
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.step_uses import Run
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Login, Runner
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.slurm.supervision.resource_uses import ResourceUses
from tests.slurm.support import WAIT_S, Box, LoginWith, bash, ended, leave, new_key, until

TWO_CPUS = SubmitRequest(ntasks=1, cpus_per_task=2, mem_per_cpu_mb=400, gpus=0, time_limit_minutes=5)
HELD_MB = 200
BURNT_S = 5
Sampled = Callable[[], Awaitable[None]]
# CPU time, not wall time: a loaded machine gives less of it.
BURNS = f"""
import os, time
block = bytearray({HELD_MB} << 20)
block[::4096] = bytes([1]) * len(block[::4096])
began = time.monotonic()
while time.process_time() < {BURNT_S + 1} or time.monotonic() - began < 11: pass
while not os.path.exists("leave"): time.sleep(0.1)
"""


async def run_of(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, script: str, sampled: Sampled | None = None
) -> tuple[Run, int]:
    """Run a script to its end, after `sampled`. Returns its run, and for how many seconds it ran."""
    await cluster.submit(key, bash(script), TWO_CPUS)
    if sampled is not None:
        await sampled()
    end = await ended(monitor, key)
    assert end.slurm_id is not None
    return (end.slurm_id, end.started_at), end.run_s


async def known(uses: ResourceUses, run: Run) -> Measured:
    async with asyncio.timeout(WAIT_S):
        while (found := await uses.of(run)) is None:
            await asyncio.sleep(0.1)
    return found


@pytest.mark.situation("ends", "a job used less than it asked for", "its log, receipt and page say what it used")
async def test_cpu_and_memory_of_a_job_are_measured(
    login: Login, box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    async def sampled() -> None:
        """Let the sampler see what the job uses while it runs, with the memory and the CPU time that it must reach."""
        monitor.watch(key)
        await until(monitor, key, Phase.RUNNING)
        async with asyncio.timeout(WAIT_S):
            while not (last := sampler.last(key)) or (last.memory_mb or 0) < HELD_MB or (last.cpu_s or 0) < BURNT_S:
                await sampler.sample()
                await asyncio.sleep(0.5)
        leave(box, key)

    uses, services = ResourceUses(login, box.settings.slurm_timeout_s), Services()
    settings = SamplingSettings(first_s=1.0, longest_s=1.0)
    sampler = UseSampler(uses, services, lambda: {key: monitor.observe(key)}, monitor.cluster_now, settings)  # type: ignore[arg-type]
    run, run_s = await run_of(cluster, monitor, key, f"exec python3 -c '{BURNS}'", sampled)
    found = await known(uses, run)
    use = resource_use(2, 800, run_s, found)
    assert use.cpu_s is not None
    assert BURNT_S <= use.cpu_s <= run_s + 1, "one of two CPUs"
    assert use.used_cpus is not None
    assert use.memory_mb is not None
    assert HELD_MB <= use.memory_mb <= HELD_MB + 50
    assert use.words.startswith("asked 2 CPUs, used ")
    assert f"asked 800 MB, used {use.memory_mb} MB" in use.words
    history = UseHistory(2, 800, 0, tuple(services.samples))
    assert all(rate is not None and rate <= 2 for rate in history.cpus), "whole seconds of CPU in steps of a second"
    assert HELD_MB <= (history.so_far.memory_mb or 0) <= HELD_MB + 50
    assert BURNT_S <= (history.so_far.cpu_s or 0) <= use.cpu_s
    assert dict(use_rows(None, history))["memory in use"]
    assert await uses.of_all({run, (run[0], 1)}) == {run: found}, "the id with another start is another run"


async def test_requests_at_the_same_time_share_a_command(
    login: Login, box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    runs = [(await run_of(cluster, monitor, new_key(), "true"))[0] for _ in range(2)]
    counted = Counted(login)
    uses = ResourceUses(counted, box.settings.slurm_timeout_s)
    await asyncio.gather(*(uses.of(run) for run in runs))
    assert counted.commands == 1


@pytest.mark.parametrize("variables", [{"SLURM_CONF": "/nowhere"}, {"PATH": "/nowhere"}])
async def test_a_site_whose_accounting_does_not_answer_says_nothing(
    login: Login, box: Box, variables: dict[str, str]
) -> None:
    uses = ResourceUses(LoginWith(login, **variables), box.settings.slurm_timeout_s)
    assert await uses.of((1, 1_000_000)) == Measured()


class Services:
    """The services, which keep the samples of one job."""

    def __init__(self) -> None:
        self.samples: list[UseSample] = []

    async def send_uses(self, samples: Mapping[JobKey, UseSample]) -> None:
        self.samples += samples.values()


class Counted:
    """A login that counts commands."""

    def __init__(self, login: Runner) -> None:
        self._login = login
        self.commands = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        self.commands += 1
        return await self._login.run(argv, stdin=stdin, timeout_s=timeout_s)

    async def close(self) -> None:
        await self._login.close()
