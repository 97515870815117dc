"""Profiles that set variables of Slurm, and sites with Slurm in a folder of its own."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError, SlurmError, SlurmUnreachable
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.checkup import examine
from deepgrid.slurm.setup.partition_findings import judge_speed, judge_version
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests import waiting
from tests.slurm.ordinary import sshd
from tests.slurm.support import SMALL, Box, bash, printed, until

VARIABLES = (
    "SQUEUE_USERS=nobody SQUEUE_PARTITION=none SQUEUE_NAMES=other SQUEUE_LICENSES=none SQUEUE_ACCOUNT=none"
    " SQUEUE_STATES=PD SQUEUE_FORMAT=%i SQUEUE_FORMAT2=jobid SQUEUE_SORT=-i SCANCEL_NAME=other SCANCEL_USER=nobody"
    " SCANCEL_PARTITION=none SCANCEL_INTERACTIVE=1 SCANCEL_STATE=PENDING SACCT_FORMAT=jobid SINFO_FORMAT=%n"
    " SBATCH_PARTITION=none SBATCH_TIMELIMIT=1 SBATCH_JOB_NAME=other SBATCH_RESERVATION=none SLURM_TIME_FORMAT=relative"
    " SCONTROL_ALL=0 SALLOC_PARTITION=none SRUN_PARTITION=none SLURM_JOB_ID=1 SLURM_BITSTR_LEN=1"
    " POSIXLY_CORRECT=1 CDPATH=/tmp BLOCKSIZE=1"
)
PROGRAMS = ("squeue", "sbatch", "scancel", "scontrol", "sacct", "sinfo", "srun")


@contextmanager
def login_with(box: Box, profile: str, *, hidden: bool = False) -> Iterator[LoginSettings]:
    """Yield a login whose shell runs `profile` before each command. `hidden`: no program of Slurm is in /usr/bin."""
    with tempfile.TemporaryDirectory(prefix="dg-login-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "profile").write_text(f'#!/bin/sh\n{profile}\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
        (folder / "profile").chmod(0o755)
        prefix: list[str] = []
        if hidden:
            (folder / "bin").mkdir()
            for program in PROGRAMS:
                shutil.copy(f"/usr/bin/{program}", folder / "bin")
            hide = f'for name in {" ".join(PROGRAMS)}; do mount --bind /dev/null "/usr/bin/$name"; done; exec "$@"'
            prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh"]
        with sshd(box, folder, box.settings.user, f"ForceCommand {folder}/profile", prefix) as settings:
            yield settings


@asynccontextmanager
async def cluster_of(settings: LoginSettings) -> AsyncIterator[Cluster]:
    login = Login(settings)
    try:
        yield Cluster(login, settings)
    finally:
        await login.close()


async def findings_of(settings: LoginSettings) -> dict[str, Finding]:
    login = Login(settings)
    try:
        return {finding.subject: finding for finding in await examine(login, Cluster(login, settings))}
    finally:
        await login.close()


async def run_and_cancel(cluster: Cluster, key: JobKey, body: str = "echo here; sleep 600") -> None:
    """Run a job until it printed something, cancel it, and see its end."""
    monitor = SlurmMonitor(cluster, poll_s=0.2)
    try:
        await cluster.submit(key, bash(body), SMALL)
        monitor.watch(key)
        assert (await until(monitor, key, Phase.RUNNING)).limit_minutes == SMALL.time_limit_minutes
        await printed(cluster, key)
        await cluster.cancel(key)
        assert (await until(monitor, key, Phase.ENDED)).state == "CANCELLED"
    finally:
        await monitor.close()


@pytest.mark.situation(
    "environment", "the login's profile sets 27 variables of Slurm, such as `SQUEUE_USERS`, and `POSIXLY_CORRECT`",
    "they change nothing: jobs are found, watched, cancelled and accounted as elsewhere",
)  # fmt: skip
async def test_variables_of_a_profile_change_nothing(box: Box, key: JobKey) -> None:
    with login_with(box, f"export {VARIABLES}") as settings:
        async with cluster_of(settings) as cluster:
            await run_and_cancel(cluster, key)
            assert await cluster.health() == (2, 2)
            assert key.comment in await cluster.spooled()
            await waiting.until(lambda: cluster.accounting(key.claimed_at - 3600, names=key.names))
        assert all(finding.level is Level.GOOD for finding in (await findings_of(settings)).values())


@pytest.mark.situation(
    "environment", "values of several lines, and `SLURM_CONF` and `SLURM_CLUSTERS`",
    "the first harm nothing, the last two stay",
)  # fmt: skip
async def test_only_what_names_the_cluster_stays(box: Box) -> None:
    lines = "export NOTE='a\nexport SQUEUE_USERS; x\nexport SLURM_X Y=1' SLURM_CLUSTERS=here SQUEUE_USERS='two\nlines'"
    lines += " POSIXLY_CORRECT=1"
    with login_with(box, lines) as settings:
        login = Login(settings)
        try:
            said = (await login.run(["env"])).text
        finally:
            await login.close()
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert {"SLURM_CONF", "SLURM_CLUSTERS"} <= names
    assert not names & {"SQUEUE_USERS", "SLURM_X", "POSIXLY_CORRECT"}
    assert "NOTE=a\nexport SQUEUE_USERS; x\n" in said


@pytest.mark.situation(
    "environment", "Slurm is in a folder that only the profile puts on the PATH",
    "its commands are found there, and jobs are submitted",
)  # fmt: skip
async def test_slurm_is_found_on_the_path_of_the_login(box: Box, key: JobKey) -> None:
    with login_with(box, 'PATH="${0%/*}/bin:$PATH"', hidden=True) as settings:
        async with cluster_of(settings) as cluster:
            await run_and_cancel(cluster, key)
        assert "programs" not in await findings_of(settings)


@pytest.mark.situation(
    "environment", "Slurm is in a folder that is not on the PATH, and `slurm_path` names it",
    "its commands are found there, even for submissions",
)  # fmt: skip
async def test_slurm_is_found_where_the_setting_says(box: Box, key: JobKey) -> None:
    with login_with(box, "", hidden=True) as settings:
        there = replace(settings, slurm_path=f"{settings.key_file.parent}/bin")
        async with cluster_of(there) as cluster:
            assert await cluster.health() == (2, 2)
            await run_and_cancel(cluster, key)


@pytest.mark.situation(
    "environment", "Slurm's commands are nowhere on the PATH",
    "doctor says which and where it looked; submissions wait, and are not refused",
)  # fmt: skip
async def test_a_login_without_slurm_says_so(box: Box, key: JobKey) -> None:
    with login_with(box, "", hidden=True) as settings:
        async with cluster_of(settings) as cluster:
            with pytest.raises(SlurmError, match=r"scontrol is not on the PATH of the login node\."):
                await cluster.health()
            with pytest.raises(SlurmUnreachable, match=r"sbatch is not in .*/usr/bin.*: set slurm_path"):
                await cluster.submit(key, bash("true"), SMALL)
        findings = await findings_of(settings)
    assert "slurm" not in findings, "one cause has one finding"
    finding = findings["programs"]
    assert (finding.level, "sbatch, squeue, scancel" in finding.words) == (Level.BAD, True)
    assert "slurm_path" in finding.next_step


@pytest.mark.situation(
    "environment", "Slurm needs longer than 20 s for an answer",
    "the limit is a setting (`slurm_timeout_s`), and doctor warns at a quarter of it",
)  # fmt: skip
async def test_the_time_limit_of_a_command_is_a_setting(box: Box) -> None:
    slow = 'PATH="${0%/*}/slow:$PATH"'
    with login_with(box, slow) as settings:
        folder = settings.key_file.parent / "slow"
        folder.mkdir()
        (folder / "squeue").write_text('#!/bin/sh\nsleep 2\nexec /usr/bin/squeue "$@"\n')
        (folder / "squeue").chmod(0o755)
        async with cluster_of(replace(settings, slurm_timeout_s=1)) as cluster:
            with pytest.raises(SlurmUnreachable, match="does not answer"):
                await cluster.remembered()
        async with cluster_of(replace(settings, slurm_timeout_s=6)) as cluster:
            await cluster.remembered()
            await cluster.snapshot([])
        finding = (await findings_of(replace(settings, slurm_timeout_s=6)))["slow commands"]
    assert finding.level is Level.WARNING
    assert "After 6 s it counts as not answered" in finding.words


WARNS = '#!/bin/sh\necho "${0##*/}: warning: the cluster is down on Monday" >&2\nexec "/usr/bin/${0##*/}" "$@"\n'


@pytest.mark.situation(
    "environment", "a site's wrappers add news to the standard error of Slurm's commands",
    "they are no answer: a lost submission is found, the job is cancelled, and a job that is gone counts as cancelled",
)  # fmt: skip
async def test_news_of_wrappers_are_no_answer(box: Box, key: JobKey) -> None:
    """The news once hid the job: it could be submitted twice, and a cancelled job ran on."""
    with login_with(box, 'PATH="${0%/*}/news:$PATH"') as settings:
        folder = settings.key_file.parent / "news"
        folder.mkdir()
        for program in PROGRAMS:
            (folder / program).write_text(WARNS)
            (folder / program).chmod(0o755)
        async with cluster_of(settings) as cluster:
            first = await cluster.submit(key, bash("echo here; sleep 600"), SMALL)
            ledger = (Path(settings.grid_root) / "ledger").read_text()
            assert re.search(rf"^{first.slurm_id} {key.folder} \d+ \d+$", ledger, re.MULTILINE), "the time is known"
            (box.folder(key) / "id").unlink()  # as if the supervisor was killed before it knew the id
            again = await cluster.submit(key, bash("echo here; sleep 600"), SMALL)
            assert (again.adopted, again.slurm_id) == (True, first.slurm_id)
            await printed(cluster, key)
            assert await cluster.set_time_limit(key, SMALL.time_limit_minutes + 5)
            await cluster.cancel(key)
            await waiting.until(lambda: box.slurm("squeue", "-h", "-a", "-n", key.name, "-o", "%A") == "")
            await cluster.cancel(key)


def test_only_a_slow_command_is_a_warning() -> None:
    assert not list(judge_speed({"slowest": "0.3"}, 20))
    assert not list(judge_speed({"slowest": "soon"}, 20))
    assert [finding.level for finding in judge_speed({"slowest": "12,5"}, 20)] == [Level.WARNING]


@pytest.mark.parametrize("path", ["opt/slurm", "/opt/slurm bin", "/opt/$(id)", ":/opt", "/opt:"])
def test_a_folder_of_slurm_is_an_absolute_path_of_plain_characters(box: Box, path: str) -> None:
    with pytest.raises(ConfigurationError, match="slurm_path"):
        replace(box.settings, slurm_path=path)


@pytest.mark.parametrize(
    ("version", "subjects"),
    [("22.05.8", []), ("24.11.5", []), ("26.05.5", ["suspension"]), ("25.11.0", ["suspension", "version"]), ("", [])],
)
def test_doctor_warns_of_versions_that_let_jobs_suspend_themselves(version: str, subjects: list[str]) -> None:
    assert [finding.subject for finding in judge_version(version)] == subjects
