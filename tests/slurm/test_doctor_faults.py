"""Things that an administrator breaks for real, and what `dps provider doctor` says then: one BAD line per cause."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.job import Prices
from deepgrid.provider.doctor import examine_cluster
from deepgrid.provider.session import ProviderSettings
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.sshds import Site, pool
from tests.slurm.support import Box, resume_nodes

CLASS_NAME = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception|Timeout|Unreachable)\b|Traceback")


@pytest.fixture
def storage(folder: Path) -> StoragePaths:
    """Volumes of jobs as nodes must have them."""
    paths = StoragePaths.under(str(folder / "storage"))
    for root in paths.roots:
        Path(root).mkdir(parents=True, exist_ok=True)
        Path(root).chmod(0o1777)
    return paths


async def examined(settings: LoginSettings, storage: StoragePaths) -> dict[str, Finding]:
    """Return the findings on the cluster by subject. Each one that is not good says what to do."""
    nowhere = Path("/nonexistent")
    provider = ProviderSettings(
        cluster="unit", book=nowhere, key_file=nowhere, login=settings, storage=storage,
        prices=Prices(1, 1, 1), labels=(), state=nowhere, trust_customers=True,
    )  # fmt: skip
    findings = await examine_cluster(provider)
    for one in findings:
        assert not CLASS_NAME.search(f"{one.words} {one.next_step}"), one
        assert one.next_step or one.level is Level.GOOD, one
    by_subject = {one.subject: one for one in findings}
    assert len(by_subject) == len(findings)
    return by_subject


def only_fault(findings: dict[str, Finding]) -> Finding:
    """Return the one BAD finding."""
    bad = [one for one in findings.values() if one.level is Level.BAD]
    assert len(bad) == 1, findings
    return bad[0]


@pytest.mark.situation(
    "doctor", "nodes lack Apptainer, Enroot and s5cmd, and nothing limits memory",
    "a warning per feature: such jobs go to other clusters; the last line says what customers get",
)  # fmt: skip
async def test_missing_features_are_warnings_and_the_summary_names_the_rest(box: Box, storage: StoragePaths) -> None:
    findings = await examined(box.settings, storage)
    assert not [one for one in findings.values() if one.level is Level.BAD], findings
    last = list(findings.values())[-1]
    assert last.subject == "summary"
    assert last.words.startswith("2 of 2 nodes can run jobs: up to 16 jobs of one CPU at a time and 2 GPUs. Customers")
    assert "logs (live)" in last.words
    for subject in ("containers", "S3", "private files", "networks"):
        is_good = findings[subject].level is Level.GOOD
        assert is_good or "not assigned here, and earn nothing" in findings[subject].words
        assert (f"{subject} (" in last.words) is is_good
    assert findings["sessions"].level is Level.GOOD


@pytest.mark.situation("doctor", "the partition of the settings does not exist", "BAD, with those that exist")
async def test_a_wrong_partition_is_one_fault_that_names_the_right_ones(box: Box, storage: StoragePaths) -> None:
    fault = only_fault(await examined(replace(box.settings, partition="man"), storage))
    assert "Nothing is claimed" in fault.words
    assert "partitions main" in fault.next_step


@pytest.mark.situation("doctor", "the port of sshd is wrong", "BAD: nothing listens there")
async def test_a_wrong_port_is_the_only_finding(box: Box, storage: StoragePaths) -> None:
    findings = await examined(replace(box.settings, port=9), storage)
    assert list(findings) == ["login"]
    assert "nothing listens on port 9" in only_fault(findings).words


@pytest.mark.situation("doctor", "the grid's folder cannot be written", "BAD, without its consequences")
async def test_a_folder_that_cannot_be_written_is_one_fault(box: Box, storage: StoragePaths) -> None:
    fault = only_fault(await examined(replace(box.settings, grid_root="/sys/kernel"), storage))
    assert fault.words.startswith("/sys/kernel is not writable")
    assert "owner, with mode 711" in fault.next_step


@pytest.mark.situation("doctor", "the grid's folder has a mode that keeps jobs out", "BAD, with the command to run")
async def test_a_folder_that_jobs_cannot_pass_is_one_fault(box: Box, folder: Path, storage: StoragePaths) -> None:
    if box.settings.job_account is None:
        pytest.skip("not root: jobs run as the supervisor")
    root = folder / "grid"
    for place in (root, root / "jobs", root / "spool"):
        place.mkdir(mode=0o700)
    (root / "jobs").chmod(0o711)
    fault = only_fault(await examined(replace(box.settings, grid_root=str(root)), storage))
    assert f"cannot pass {root} (mode 700)" in fault.words
    assert fault.next_step == f"Run chmod o+x {root}."


@pytest.mark.long
@pytest.mark.situation("doctor", "login node and nodes do not share the grid's folder", "BAD, after a job tried it")
async def test_a_folder_that_is_not_shared_is_one_fault(box: Box, site: Site, storage: StoragePaths) -> None:
    settings = site("apart", without=[Path(box.settings.grid_root)])
    fault = only_fault(await examined(settings, storage))
    assert (fault.subject, "do not see" in fault.words) == ("nodes", True)


@pytest.mark.long
@pytest.mark.situation("doctor", "`MaxSessions` of sshd is small", "a warning: how many commands run at a time")
async def test_few_sessions_are_a_warning_with_their_cost(site: Site, storage: StoragePaths) -> None:
    findings = await examined(site("few", "MaxSessions 3"), storage)
    assert not [one for one in findings.values() if one.level is Level.BAD]
    assert "sshd allows 3 sessions per connection (MaxSessions): 2 of 8 commands" in findings["sessions"].words


@pytest.mark.situation("doctor", "all nodes are drained", "BAD with the reason; no job tries a node")
async def test_drained_nodes_are_one_fault(box: Box, storage: StoragePaths) -> None:
    box.slurm("scontrol", "update", "nodename=unit-n[1-2]", "state=drain", "reason=new pumps")
    try:
        findings = await examined(box.settings, storage)
    finally:
        resume_nodes(box)
    assert "new pumps" in only_fault(findings).words
    assert "none is claimed and nothing is earned" in findings["summary"].words
    assert "nodes" not in findings


@pytest.mark.situation("doctor", "job_submit.lua is gone from disk", "BAD before slurmctld restarts without it")
async def test_a_submit_hook_that_is_gone_is_one_fault(box: Box, storage: StoragePaths) -> None:
    hook = Path(box.site.environment(box.name)["SLURM_CONF"]).with_name("job_submit.lua")
    hook.rename(hook.with_suffix(".away"))
    try:
        fault = only_fault(await examined(box.settings, storage))
    finally:
        hook.with_suffix(".away").rename(hook)
    assert "after its next restart slurmctld takes no job" in fault.words


@contextmanager
def frozen(box: Box, daemon: str) -> Iterator[None]:
    """Stop a daemon as a hung one: its port still accepts connections."""
    pid = box.table.pid(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.long  # waits for sacct's timeouts
@pytest.mark.situation("doctor", "slurmdbd hangs", "a warning where the hook records ends; BAD elsewhere")
async def test_accounting_that_hangs_is_named(box: Box, storage: StoragePaths) -> None:
    with frozen(box, "slurmdbd"):
        findings = await examined(replace(box.settings, slurm_timeout_s=3.0), storage)
    assert "accounting (slurmdbd) does not answer" in findings["accounting"].words
    assert not [one for one in findings.values() if one.level is Level.BAD]


@pytest.mark.long  # Slurm's commands retry for a while
@pytest.mark.situation("doctor", "slurmctld does not run", "one BAD line, although all else depends on it")
async def test_a_stopped_controller_is_one_fault(box: Box, stop: Callable[[str], None], storage: StoragePaths) -> None:
    stop("slurmctld")
    fault = only_fault(await examined(replace(box.settings, slurm_timeout_s=3.0), storage))
    assert (fault.subject, "Nothing is claimed until it does" in fault.words) == ("slurm", True)


@pytest.mark.long
@pytest.mark.situation("doctor", "one of several login nodes is down, or has another folder", "a line for each node")
async def test_each_login_node_has_a_line(box: Box, site: Site, folder: Path, storage: StoragePaths) -> None:
    first = site("first")
    ready = f"ListenAddress 127.0.0.2:{first.port}"
    second = site("second", ready, without=[Path(box.settings.grid_root)])
    (folder / "second" / "authorized_keys").write_text((folder / "first" / "authorized_keys").read_text())
    settings = pool(first, first, second, port=first.port, hosts=("127.0.0.1", "127.0.0.3", "127.0.0.2"))
    findings = await examined(settings, storage)
    assert findings["login 127.0.0.1"].level is Level.GOOD
    assert "could be submitted twice" in only_fault(findings).words
    assert findings["login 127.0.0.3"].level is Level.WARNING
