"""Kills the login node's shell before and after each command of the submit protocol. A new call completes the work."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, WAIT_S, Box, LoginWith, bash, ended, new_key, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # about fifty kills, each with its own job

COMMANDS = ("cat", "chmod", "chown", "date", "dd", "env", "find", "flock", "grep", "head", "id", "mkdir", "mv", "rm")
COMMANDS += ("sed", "sort", "sync", "timeout", "tr", "wc")
# Replaces each command: records it, and kills the shells that called the command with the number KILL_AT.
WRAPPER = """#!/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
number=$(wc -l < "$KILL_LOG")
echo "${0##*/} $*" >> "$KILL_LOG"
end() {
  pid=$PPID
  while [ "$(cat "/proc/$pid/comm")" = sh ]; do
    parent=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 2)
    kill -9 "$pid"
    pid=$parent
  done
  exit 1
}
[ "$KILL_WHEN $number" != "before $KILL_AT" ] || end
"${0##*/}" "$@"
status=$?
[ "$KILL_WHEN $number" != "after $KILL_AT" ] || end
exit "$status"
"""
AT_ONCE = 6


@dataclass(frozen=True)
class Killer:
    """Makes logins to a cluster. Their shell on the login node is killed at a chosen command."""

    box: Box
    folder: Path

    async def at(
        self, point: int, when: str, effect: Callable[[Cluster], Awaitable[object]], *, may_end_early: bool = False
    ) -> list[str]:
        """Run `effect` with the shell killed at this command. Returns the commands that were started.

        With `may_end_early`, a run may need fewer commands than the sample that counted them.
        """
        log = self.folder / f"log-{time.monotonic_ns()}"
        log.touch()
        path = f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        login = LoginWith(Login(self.box.settings), PATH=path, KILL_LOG=str(log), KILL_AT=str(point), KILL_WHEN=when)
        try:
            await effect(Cluster(login, self.box.settings))
        except SlurmUnreachable:
            pass
        else:
            ran = log.read_text().splitlines()
            ended_early = may_end_early and len(ran) <= point
            assert ended_early or point < 0, f"nothing was killed {when} command {point}: {ran}"
        finally:
            await login.close()
        return log.read_text().splitlines()


@pytest.fixture
def killer(box: Box, state_folder: Path) -> Killer:
    folder = state_folder / "killer"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    for name in COMMANDS:
        (folder / "bin" / name).write_text(WRAPPER)
        (folder / "bin" / name).chmod(0o755)
    return Killer(box, folder)


async def in_turns(trials: list[Awaitable[None]]) -> None:
    """Run all trials, AT_ONCE of them at the same time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(trial: Awaitable[None]) -> None:
        async with room:
            await trial

    await asyncio.gather(*(one(trial) for trial in trials))


async def test_a_submission_that_is_killed_anywhere_is_completed_once(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, killer: Killer
) -> None:
    async def submit(cluster: Cluster, key: JobKey) -> object:
        return await cluster.submit(key, bash("echo ran"), SMALL)

    async def trial(point: int, when: str) -> None:
        key = new_key()
        await killer.at(point, when, lambda cluster: submit(cluster, key))
        await _processes_gone(key)
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    await submit(cluster, key)
                    break
                except SlurmUnreachable as error:
                    if "may still reach" in error.message:
                        _age(box, key)
                await asyncio.sleep(0.2)
        assert (await ended(monitor, key)).state == "COMPLETED"
        assert len(box.ids(key)) == 1, f"killed {when} command {point}"
        assert (await cluster.read_output({key: 0}))[key] == b"ran\n"

    sample = new_key()
    steps = await killer.at(-1, "never", lambda cluster: submit(cluster, sample))
    assert len(steps) > 10, steps
    await in_turns([trial(point, when) for point in range(len(steps)) for when in ("before", "after")])


async def test_a_cancellation_that_is_killed_anywhere_is_completed(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, killer: Killer
) -> None:
    async def trial(point: int, when: str) -> None:
        key = new_key()
        await cluster.submit(key, bash("sleep 600 && echo ran"), SMALL)
        # the guard may end the job by the tombstone, and then there is nothing to scancel
        await killer.at(point, when, lambda cluster: cluster.cancel(key), may_end_early=True)
        await cluster.cancel(key)
        monitor.watch(key)
        end = await until(monitor, key, Phase.ENDED, Phase.ABSENT)  # absent: the guard refused the start
        assert end.phase is Phase.ABSENT or end.state == "CANCELLED", f"killed {when} command {point}: {end}"
        assert b"ran\n" not in (await cluster.read_output({key: 0})).get(key, b"")

    sample = new_key()
    await cluster.submit(sample, bash("sleep 600"), SMALL)
    steps = await killer.at(-1, "never", lambda cluster: cluster.cancel(sample))
    await in_turns([trial(point, when) for point in range(len(steps)) for when in ("before", "after")])


async def _processes_gone(key: JobKey) -> None:
    """Wait until the commands that the killed shell had started have ended."""
    async with asyncio.timeout(WAIT_S):
        while any(key.comment.encode() in _command_line(folder) for folder in Path("/proc").glob("[0-9]*")):
            await asyncio.sleep(0.1)


def _command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""


def _age(box: Box, key: JobKey) -> None:
    """Make the intent so old that a hung sbatch can no longer reach Slurm. Its process is already gone."""
    (box.folder(key) / "intent").write_text(f"{int(time.time()) - 600}\n")
