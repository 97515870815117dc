"""Findings of `dps provider doctor` on a real cluster, and for the facts of other clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.checkup import Facts, ask, examine, judge
from deepgrid.slurm.setup.hook_text import completion_hook, version_of
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.support import Box

SETTINGS = LoginSettings("host", 22, "grid", Path("key"), Path("known"), "/srv/grid")
SOUND = {
    "clock": "0", "account": "grid", "SLURM_VERSION": "22.05.8", "JobCompType": "jobcomp/lua",
    "AccountingStorageType": "accounting_storage/slurmdbd", "MinJobAge": "300 sec",
    "hook SPOOL": "/srv/grid/spool", "hook VERSION": version_of(completion_hook("/srv/grid/spool")),
    "folder /": "writable", "folder /jobs": "writable",
    "folder /spool": "writable", "free_mib": "90000", "filesystem": "nfs", "locks": "yes",
}  # fmt: skip


def found(changes: dict[str, str], ahead_s: float = 0.2) -> dict[str, Finding]:
    findings = judge(Facts({**SOUND, **changes}, ahead_s), SETTINGS)
    assert all(finding.next_step for finding in findings if finding.level is Level.BAD)
    return {finding.subject: finding for finding in findings}


def test_a_sound_cluster_has_only_good_findings() -> None:
    assert {finding.level for finding in found({}).values()} == {Level.GOOD}


@pytest.mark.parametrize(
    ("changes", "subject", "level", "words"),
    [
        ({"folder /": "missing"}, "folder", Level.BAD, "/srv/grid is missing for grid"),
        ({"folder /jobs": "not writable"}, "folder", Level.BAD, "/srv/grid/jobs is not writable"),
        ({"free_mib": "10"}, "disk", Level.BAD, "10 MiB"),
        ({"free_mib": "500"}, "disk", Level.WARNING, "500 MiB"),
        ({"locks": "no"}, "locks", Level.BAD, "submitted twice"),
        ({"folder /spool": "not writable"}, "ends", Level.BAD, "cannot empty"),
        ({"hook VERSION": ""}, "ends", Level.BAD, "of another version"),
        ({"JobCompType": "jobcomp/none"}, "ends", Level.WARNING, "accounting"),
        ({"hook SPOOL": "/elsewhere"}, "ends", Level.WARNING, "accounting"),
        ({"JobCompType": "", "AccountingStorageType": ""}, "ends", Level.WARNING, "down for 300 sec"),
        (
            {"JobCompType": "", "AccountingStorageType": "", "MinJobAge": "0 sec"},
            "ends",
            Level.WARNING,
            "keeps ended jobs",
        ),
    ],
)
def test_a_fault_is_reported_with_its_loss(changes: dict[str, str], subject: str, level: Level, words: str) -> None:
    finding = found(changes)[subject]
    assert finding.level is level
    assert words in finding.words


def test_a_wrong_clock_is_a_warning() -> None:
    late = found({}, ahead_s=-400.0)["clock"]
    assert (late.level, late.words) == (Level.WARNING, "The login node's clock is 400 s behind this machine's.")


async def test_a_real_cluster_is_examined_and_not_changed(box: Box, cluster: Cluster) -> None:
    root = Path(box.settings.grid_root)
    before = sorted(path.name for path in root.rglob("*"))
    login = Login(box.settings)
    try:
        findings = {finding.subject: finding for finding in await examine(login, cluster)}
        facts = await ask(login, box.settings)
    finally:
        await login.close()
    wrong = {name: finding for name, finding in findings.items() if finding.level is not Level.GOOD}
    assert not wrong
    assert findings.keys() >= {"login", "slurm", "clock", "disk", "locks", "ends"}
    assert "partition main: 2 of 2 nodes can run jobs." in findings["slurm"].words
    assert facts.values["SLURM_VERSION"][0].isdigit()
    assert sorted(path.name for path in root.rglob("*")) == before


@pytest.mark.long  # Slurm's commands retry for a while
async def test_a_cluster_without_a_controller_is_reported_as_not_answering(
    box: Box, cluster: Cluster, stop: Callable[[str], None]
) -> None:
    stop("slurmctld")
    login = Login(box.settings)
    try:
        findings = {finding.subject: finding for finding in await examine(login, cluster)}
    finally:
        await login.close()
    assert findings["login"].level is Level.GOOD
    assert findings["slurm"].level is Level.BAD
    assert "does not answer" in findings["slurm"].words


async def test_a_login_that_cannot_be_reached_is_the_only_finding(
    box: Box, cluster: Cluster, stop: Callable[[str], None]
) -> None:
    stop("sshd")
    login = Login(box.settings)
    try:
        (finding,) = await examine(login, cluster)
    finally:
        await login.close()
    assert (finding.subject, finding.level) == ("login", Level.BAD)
