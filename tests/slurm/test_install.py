"""`dps provider install-hooks` on a real cluster without hooks: the installed hooks work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError, SlurmUnreachable
from deepgrid.findings import Level
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup import install
from deepgrid.slurm.setup.checkup import examine
from deepgrid.slurm.setup.guards import ask_guards, missing_guards
from deepgrid.slurm.setup.hook_config import Site, plan
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.running_site import running_site
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, ended, leave, new_key

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # a separate cluster, and restarts of its controller


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A cluster with accounting and without hooks."""
    spec = ClusterSpec("bare", nodes=1, cpus_per_node=8, hook=False, guard=False)
    with running_site(tmp_path_factory.mktemp("bare"), spec) as (site, table):
        yield Box(site, table, "bare")


def conf(box: Box) -> Path:
    return Path(box.site.environment(box.name)["SLURM_CONF"])


def restart(box: Box) -> None:
    """Restart the controller with its present configuration."""
    (daemon,) = [one for one in box.site.daemons() if one.name == f"{box.name}-slurmctld"]
    box.table.stop(daemon.name)
    box.table.start(daemon)
    box.table.wait_ready(daemon)


async def installed(box: Box, login: Login) -> Site:
    """Install what is missing, restart, and check that the plan is empty."""
    site = await install.read_site(login, box.settings)
    await install.apply(login, site, plan(site))
    restart(box)
    site = await install.read_site(login, box.settings)
    assert plan(site).empty, plan(site)
    return site


async def levels(login: Login, cluster: Cluster) -> dict[str, Level]:
    return {one.subject: one.level for one in await examine(login, cluster)}


async def lacking(box: Box, login: Login) -> set[str]:
    """Return the names of the guards that the cluster lacks."""
    return {guard.name for guard in missing_guards(await ask_guards(login, box.settings), box.settings)}


def record(box: Box, slurm_id: int | None) -> dict[str, str]:
    """Return the fields of a job's record in the spool."""
    (file,) = Path(box.settings.grid_root, "spool").glob(f"{slurm_id}.*")
    return dict(line.split("=", 1) for line in file.read_text().split("\n") if line)


async def run(cluster: Cluster, monitor: SlurmMonitor, body: str) -> tuple[JobKey, SlurmJob]:
    key = new_key()
    await cluster.submit(key, bash(body), SMALL)
    return key, await ended(monitor, key)


async def test_a_bare_cluster_records_ends_after_the_installation(
    box: Box, login: Login, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    before = conf(box).read_text()
    assert (await levels(login, cluster))["ends"] is Level.WARNING
    assert "submit_hook" in await lacking(box, login)
    site = await install.read_site(login, box.settings)
    copy = await install.apply(login, site, plan(site))
    assert Path(copy).read_text() == before
    assert conf(box).stat().st_mode == Path(copy).stat().st_mode
    assert not list(conf(box).parent.glob("*.deepgrid-new"))
    waits = plan(await install.read_site(login, box.settings))
    assert waits.restart and not waits.files, "installed, but slurmctld was not restarted"
    await installed(box, login)
    assert (await levels(login, cluster))["ends"] is Level.GOOD
    assert "submit_hook" not in await lacking(box, login)
    key, end = await run(cluster, monitor, "exit 3")
    assert (end.state, end.exit_status) == ("FAILED", 768)
    assert record(box, end.slurm_id)["comment"] == key.comment
    await cluster.acknowledge(key)


def mounted(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_spool_keeps_no_half_record_and_the_end_is_known(
    box: Box, login: Login, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    await installed(box, login)
    spool = Path(box.settings.grid_root, "spool")
    if not mounted("-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(spool)):
        pytest.skip("this process cannot mount")
    try:
        key, reserved = new_key(), new_key()
        for one in (key, reserved):
            await cluster.submit(one, bash(f"{WAIT_FOR_LEAVE}; exit 3"), SMALL)
        (spool / f".reserve.{key.comment}").unlink()
        stuffed = 0
        with pytest.raises(OSError, match="No space"):
            for stuffed in range(100):
                (spool / f"stuffing-{stuffed}").write_bytes(b"x" * 4096)
        before = sorted(path.name for path in spool.iterdir())
        leave(box, key)
        end = await ended(monitor, key)
        assert (end.state, end.exit_status) == ("FAILED", 768), "by slurmctld's memory"
        assert sorted(path.name for path in spool.iterdir()) == before
        log = box.table.log_path(f"{box.name}-slurmctld").read_text(errors="replace")
        assert f"no completion record of job {end.slurm_id}: " in log
        assert "No space left on device" in log
        leave(box, reserved)
        end = await ended(monitor, reserved)
        assert record(box, end.slurm_id)["comment"] == reserved.comment
        with pytest.raises(SlurmUnreachable, match="could not write"):  # there is no room for its record
            await cluster.submit(new_key(), bash("true"), SMALL)
    finally:
        unmount(spool)


async def test_a_sites_own_lua_is_kept(box: Box, login: Login) -> None:
    await installed(box, login)
    mine, text = conf(box).parent / "jobcomp.lua", "-- the site's\nfunction slurm_jobcomp_log_record() return 0 end\n"
    hook = mine.read_text()
    mine.write_text(text)
    try:
        site = await install.read_site(login, box.settings)
        made = plan(site)
        assert "is the site's own and is kept" in made.by_hand[0]
        await install.apply(login, site, made)
        assert mine.read_text() == text
        mine.unlink()
        stale = plan(site := await install.read_site(login, box.settings))
        mine.write_text(text)  # a change after the plan was made
        with pytest.raises(ConfigurationError, match="was changed meanwhile"):
            await install.apply(login, site, stale)
        assert mine.read_text() == text
    finally:
        mine.write_text(hook)


async def test_the_restart_command_runs_and_its_failure_is_reported(box: Box, login: Login, tmp_path: Path) -> None:
    await install.restart(login, f"touch {tmp_path}/restarted")
    assert (tmp_path / "restarted").exists()
    with pytest.raises(ConfigurationError, match="The restart failed: no such unit"):
        await install.restart(login, "echo no such unit >&2; exit 5")
