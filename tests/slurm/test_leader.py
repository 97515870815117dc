"""One leader per provider, whatever happens to its process, its connection or its lock on the login node."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

import pytest

from deepgrid.errors import Deposed, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.supervision.leader import LEADER_DEFAULTS, Leader, LeaderSettings
from tests.chaos.proxy import Hang, Pass, Proxy
from tests.slurm.leaders import candidate, leading, within
from tests.slurm.support import SMALL, WAIT_S, Box, bash

QUICK = LeaderSettings(heartbeat_s=0.2, answer_timeout_s=2.0, silence_timeout_s=4)
MANY = 40
Start = Callable[[str, LeaderSettings], subprocess.Popen[str]]

_serial = count(1)


@pytest.fixture
def provider() -> str:
    """A provider that no other test has."""
    return f"31337-0xc0ffee-{os.getpid()}-{next(_serial)}"


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not reached():
            await asyncio.sleep(0.05)


def holders(provider: str) -> list[int]:
    """Return the ids of the processes on the login node (this machine) that hold the lock or try to take it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"bash" and provider.encode() in words:
                found.append(int(folder.name))
    return found


async def test_one_leads_the_other_stands_by_and_takes_over(
    box: Box, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with candidate(box.settings, provider) as second:
        async with leading(box.settings, provider) as (first, _):
            waiting = asyncio.create_task(second.elected())
            await until(lambda: f"process {os.getpid()} on" in caplog.text)
            assert (first.leads, first.epoch, second.leads) == (True, 1, False)
        await within(waiting)
        assert (second.leads, second.epoch) == (True, 2)
    assert caplog.text.count("standing by") == 1, "the present leader is logged once"


@pytest.mark.long  # five terms, one after another
async def test_of_many_candidates_one_leads_and_no_epoch_is_used_twice(box: Box, provider: str) -> None:
    everybody: list[Leader] = []

    async def lead_once() -> int:
        async with candidate(box.settings, provider) as one:
            everybody.append(one)
            await within(one.elected())
            assert [other for other in everybody if other.leads] == [one]
            return one.epoch

    assert sorted(await asyncio.gather(*(lead_once() for _ in range(5)))) == [1, 2, 3, 4, 5]


async def test_a_killed_leader_is_replaced_at_once(box: Box, provider: str, process: Start) -> None:
    first = process(provider, LEADER_DEFAULTS)
    assert await said(first) == "leading 1"
    first.kill()
    async with leading(box.settings, provider) as (second, _):
        assert second.epoch == 2


@pytest.mark.long  # waits for the silence timeout
async def test_a_stopped_leader_is_replaced_after_the_timeout_and_deposed_when_it_continues(
    box: Box, provider: str, process: Start
) -> None:
    """Its connection stays open and nothing answers, as after a power cut or a network fault."""
    first = process(provider, QUICK)
    assert await said(first) == "leading 1"
    os.kill(first.pid, signal.SIGSTOP)
    async with leading(box.settings, provider) as (second, _):
        assert second.epoch == 2
        os.kill(first.pid, signal.SIGCONT)
        assert await said(first) == "deposed"
        assert second.leads


@pytest.mark.long  # waits for the silence timeout
async def test_a_connection_that_hangs_is_given_up_by_both_sides(box: Box, provider: str) -> None:
    proxy = Proxy(box.settings.port)
    proxy.start()
    known = box.settings.known_hosts_file.with_name("known_hosts_of_proxy")
    known.write_text(box.settings.known_hosts_file.read_text().replace(f"]:{box.settings.port} ", f"]:{proxy.port} "))
    away = replace(box.settings, port=proxy.port, known_hosts_file=known, connect_timeout_s=2.0)
    try:
        async with leading(away, provider, QUICK) as (first, holding):
            proxy.set(Hang())
            await until(lambda: not first.leads)
            async with leading(box.settings, provider) as (second, _):
                assert second.epoch == 2
                proxy.set(Pass())
                with pytest.raises(Deposed):
                    await within(holding)
                assert second.leads
    finally:
        proxy.close()


async def test_a_broken_connection_keeps_the_term_if_no_other_supervisor_led(
    box: Box, provider: str, key: JobKey, stop: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Two reasons take turns: the login node refuses, and the next attempt is delayed. They once made a line each."""
    caplog.set_level(logging.INFO)
    async with leading(box.settings, provider, replace(LEADER_DEFAULTS, retry_s=0.1)) as (one, holding):
        stop("sshd")
        await until(lambda: not one.leads)
        await until(lambda: one.attempts > MANY)
        lost = [line for line in caplog.messages if "lost the leader lock" in line]
        assert lost[0].startswith(f"leadership: lost the leader lock of {provider}, trying again: ")
        assert len(lost) < MANY / 4
        box.start()
        await until(lambda: one.leads)
        assert (one.epoch, holding.done()) == (1, False)
        assert f"lost the leader lock of {provider} no longer, after " in caplog.text
        await one.cluster.cancel(key)


@pytest.mark.long  # waits between attempts
async def test_a_lock_process_that_is_killed_on_the_login_node_is_replaced(box: Box, provider: str) -> None:
    async with leading(box.settings, provider, QUICK) as (one, holding):
        (former,) = holders(provider)
        os.kill(former, signal.SIGKILL)
        await until(lambda: one.leads and holders(provider) not in ([], [former]))
        assert (one.epoch, holding.done()) == (1, False)
    await until(lambda: not holders(provider))


@pytest.mark.long  # waits until no supervisor leads
async def test_a_lock_process_that_is_stopped_on_the_login_node_keeps_the_lock(box: Box, provider: str) -> None:
    """No other supervisor can lead meanwhile, so the leader's jobs continue. It leads again when the lock is freed."""
    async with leading(box.settings, provider, QUICK) as (one, holding):
        (former,) = holders(provider)
        os.kill(former, signal.SIGSTOP)
        try:
            await until(lambda: not one.leads)
            async with candidate(box.settings, provider) as other:
                assert not await within(other.attempt())
        finally:
            os.kill(former, signal.SIGCONT)
        await until(lambda: one.leads)
        assert (one.epoch, holding.done()) == (1, False)


async def test_effects_of_a_former_leader_are_refused_whole(box: Box, provider: str, key: JobKey) -> None:
    async with candidate(box.settings, provider) as first:
        await first.elected()
        first.close()
        async with leading(box.settings, provider) as (second, _):
            submission = await second.cluster.submit(key, bash("sleep 600"), SMALL)
            before = {file: file.read_bytes() for file in box.folder(key).iterdir() if file.is_file()}
            assert not first.cluster.deposed.is_set()
            for effect in (
                first.cluster.submit(key, bash("true"), SMALL),
                first.cluster.cancel(key),
                first.cluster.set_time_limit(key, 90),
                first.cluster.acknowledge(key),
            ):
                with pytest.raises(Deposed) as refusal:
                    await effect
                assert not refusal.value.transient
            assert first.cluster.deposed.is_set()
            assert {file: file.read_bytes() for file in box.folder(key).iterdir() if file.is_file()} == before
            assert box.ids(key) == [submission.slurm_id]
            assert (await first.cluster.queue(key)).claims[key].limit_minutes == SMALL.time_limit_minutes
            await second.cluster.cancel(key)


async def test_a_leader_with_an_old_epoch_stops_leading(box: Box, provider: str, key: JobKey) -> None:
    """Where locks do not work, two supervisors can hold one.

    The epoch deposes the first one at an effect or heartbeat.
    """
    epoch = Path(box.settings.grid_root) / "leaders" / provider / "epoch"
    async with leading(box.settings, provider) as (first, holding):
        epoch.write_text("2\n")
        with pytest.raises(Deposed):
            await first.cluster.cancel(key)
        with pytest.raises(Deposed):
            await within(holding)
        assert not first.leads
    async with leading(box.settings, provider, QUICK) as (_, holding):
        epoch.write_text("9\n")
        with pytest.raises(Deposed):
            await within(holding)


async def test_an_epoch_that_cannot_be_read_stops_effects_until_it_can(box: Box, provider: str, key: JobKey) -> None:
    epoch = Path(box.settings.grid_root) / "leaders" / provider / "epoch"
    async with leading(box.settings, provider) as (one, _):
        hidden = epoch.rename(epoch.with_name("hidden"))
        with pytest.raises(SlurmUnreachable, match="who leads"):
            await one.cluster.cancel(key)
        hidden.rename(epoch)
        await one.cluster.cancel(key)


async def test_leading_uses_no_channel_of_the_commands(box: Box, provider: str) -> None:
    async with leading(replace(box.settings, max_channels=1), provider) as (one, _):
        assert (await one.login.run(["echo", "free"], timeout_s=WAIT_S)).stdout == b"free\n"


async def said(candidate: subprocess.Popen[str]) -> str:
    """Return the next line that a candidate in another process prints."""
    assert candidate.stdout is not None
    return (await within(asyncio.to_thread(candidate.stdout.readline))).rstrip()


@pytest.fixture
def process(box: Box) -> Iterator[Start]:
    """Start candidates in separate processes."""
    started: list[subprocess.Popen[str]] = []

    def start(provider: str, timing: LeaderSettings) -> subprocess.Popen[str]:
        settings = json.dumps(asdict(box.settings), default=str)
        argv = [sys.executable, "-m", "tests.slurm.leader_process", provider, json.dumps(asdict(timing)), settings]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()
