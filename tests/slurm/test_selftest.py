"""The doctor's self-test of leadership and submission, on file systems with and without working locks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.checkup import ask
from deepgrid.slurm.setup.selftest import SELFTEST_DEFAULTS, SelfTestSettings, run_selftest
from deepgrid.slurm.ssh.channel import LineChannel
from deepgrid.slurm.ssh.login import CommandResult, Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.leaders import leading
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key


class LoginOn(Login):
    """A login whose PATH begins with this folder."""

    def __init__(self, settings: LoginSettings, folder: Path) -> None:
        super().__init__(settings)
        self._env = ["env", f"PATH={folder}:{os.environ['PATH']}"]

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        return await super().run([*self._env, *argv], stdin=stdin, timeout_s=timeout_s)

    async def open_line_channel(self, argv: Sequence[str]) -> LineChannel:
        return await super().open_line_channel([*self._env, *argv])


async def tried(
    login: Login, settings: SelfTestSettings = SELFTEST_DEFAULTS, storage: Sequence[str] = ("/tmp",)
) -> dict[str, Finding]:
    try:
        findings = await run_selftest(login, Cluster(login, login.settings), storage, settings)
        return {finding.subject: finding for finding in findings}
    finally:
        await login.close()


def assert_sound(findings: dict[str, Finding]) -> None:
    """Check that all is good, except that no firewall limits the connections of this machine's jobs."""
    counted = findings.pop("connections", None)  # none if the job is root's
    assert counted is None or (counted.level, "could hold 40 connections" in counted.words) == (Level.WARNING, True)
    assert {name: one.level for name, one in findings.items()} == dict.fromkeys(
        ("leading", "submitting", "nodes", "storage"), Level.GOOD
    ), findings


async def test_a_sound_cluster_passes_and_is_not_changed(box: Box) -> None:
    root = Path(box.settings.grid_root)
    (root / "ledger").touch()  # stays after the first submission
    before = files(root)
    assert_sound(await tried(Login(box.settings)))
    assert files(root) == before
    assert not list(root.rglob("doctor*"))


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.mark.long  # two self-tests
async def test_without_locks_two_lead_and_a_claim_is_submitted_twice(box: Box, tmp_path: Path) -> None:
    """The fake flock behaves like a mount that grants every lock."""
    (tmp_path / "flock").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "flock").chmod(0o755)
    findings = await tried(LoginOn(box.settings, tmp_path))
    for name in ("leading", "submitting"):
        assert findings[name].level is Level.BAD
        assert "locks" in findings[name].next_step
    login = LoginOn(box.settings, tmp_path)
    assert (await ask(login, box.settings)).values["locks"] == "no"
    await login.close()


async def test_nodes_that_do_not_see_the_folder_are_reported(box: Box, tmp_path: Path) -> None:
    if box.settings.job_account is None:
        pytest.skip("not root: jobs see what the supervisor sees")
    root = tmp_path / "private"
    root.mkdir(mode=0o700)
    nodes = (await tried(Login(replace(box.settings, grid_root=str(root)))))["nodes"]
    assert (nodes.level, "do not see" in nodes.words) == (Level.BAD, True)


async def test_storage_that_jobs_cannot_use_is_reported(box: Box, tmp_path: Path) -> None:
    closed = tmp_path / "it's closed"
    closed.mkdir(mode=0o755)
    storage = (await tried(Login(box.settings), storage=["/tmp", "/absent", str(closed), "/etc/passwd"]))["storage"]
    assert storage.level is Level.BAD
    assert f"mode 1777: /absent, {closed}, /etc/passwd." in storage.words


async def test_a_partition_without_a_free_node_does_not_hang_the_doctor(box: Box, held: Callable[[], None]) -> None:
    nodes = (await tried(Login(box.settings), SelfTestSettings(node_timeout_s=2.0)))["nodes"]
    assert (nodes.level, "PENDING" in nodes.words) == (Level.WARNING, True), nodes
    assert box.slurm("squeue", "-h", "-a", "-o", "%j").count("doctor") == 0


MAKE = {
    "tmpfs": "mount -t tmpfs -o size=64m deepgrid-test {place}",
    "ext2/ext3": "truncate -s 64M {place}.img && mkfs.ext4 -q {place}.img && mount -o loop {place}.img {place}",
}


@pytest.fixture(params=MAKE)
def elsewhere(request: pytest.FixtureRequest, state_folder: Path, box: Box) -> Iterator[LoginSettings]:
    """The grid's folder on a new file system."""
    name: str = request.param
    place = state_folder / f"mounted-{list(MAKE).index(name)}"
    place.mkdir()
    done = subprocess.run(["sh", "-c", MAKE[name].format(place=place)], capture_output=True, text=True, check=False)
    if done.returncode:
        place.rmdir()
        pytest.skip(f"no {name} can be mounted here: {done.stderr.strip()}")
    try:
        yield replace(box.settings, grid_root=str(place))
    finally:
        deadline = time.monotonic() + WAIT_S
        while subprocess.run(["umount", str(place)], capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, f"{place} is still in use"
            time.sleep(0.2)


@pytest.mark.long  # makes and removes file systems
async def test_the_protocols_hold_on_other_file_systems(
    elsewhere: LoginSettings, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["elsewhere"]
    Path(elsewhere.grid_root).chmod(0o711)
    login = Login(elsewhere)
    assert (await ask(login, elsewhere)).values["filesystem"] == kind
    await login.close()
    assert_sound(await tried(Login(elsewhere)))
    key = new_key()
    async with leading(elsewhere, f"provider-{key.job_id}") as (first, _):
        other = Login(elsewhere)
        clusters = [first.cluster, Cluster(other, elsewhere)] * 2
        found = await asyncio.gather(*(one.submit(key, bash("true"), SMALL) for one in clusters))
        await other.close()
        assert sorted(one.adopted for one in found) == [False, True, True, True]
        monitor = SlurmMonitor(first.cluster, poll_s=0.2)
        assert (await ended(monitor, key)).state == "COMPLETED"
        await monitor.close()
