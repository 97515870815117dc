"""Queries and side effects on a real cluster through a real sshd."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import SlurmError, SlurmUnreachable
from deepgrid.lifecycle.job import Hardware, JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, Box, LoginWith, bash, by_accounting, ended, ends, new_key, until


async def test_health_and_hardware(cluster: Cluster) -> None:
    usable, nodes = await cluster.health()
    assert usable == nodes > 0
    assert await cluster.hardware() == Hardware((1, 1), (8, 8), (4000, 4000))


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        (SubmitRequest(4, 4, 100, 2, 10), True),
        (SubmitRequest(1, 9, 100, 0, 10), False),
        (SubmitRequest(1, 1, 5000, 0, 10), False),
        (SubmitRequest(1, 1, 100, 3, 10), False),
        (SubmitRequest(1, 1, 100, 1, 10, gpu_type="fake"), True),
        (SubmitRequest(1, 1, 100, 1, 10, gpu_type="other"), False),
    ],
    ids=["fits", "too many CPUs a task", "too much memory", "too many GPUs", "a type of GPU", "a missing type"],
)
async def test_a_job_that_can_never_run_is_refused_at_once(
    cluster: Cluster, key: JobKey, request_: SubmitRequest, fits: bool
) -> None:
    if fits:
        await cluster.submit(key, bash("true"), request_)
        await cluster.cancel(key)  # the job takes the whole cluster
        return
    with pytest.raises(SlurmError, match=r"Slurm refused: [A-Z]") as refusal:
        await cluster.submit(key, bash("true"), request_)
    assert not refusal.value.transient


async def test_a_job_gets_what_it_asked_for(cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    step = """srun bash -c 'echo "gpu $CUDA_VISIBLE_DEVICES"'"""
    body = f'echo "$SLURM_NTASKS $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_CPU"; {step}'
    await cluster.submit(key, bash(body), SubmitRequest(2, 3, 111, 2, 5))
    assert (await ended(monitor, key)).state == "COMPLETED"
    lines = (await cluster.read_output({key: 0}))[key].decode().splitlines()
    own = [line for line in lines if not line.startswith(("srun: ", "slurmstepd"))]
    assert own[0] == "2 3 111"
    assert sorted(own[1:]) == ["gpu 0", "gpu 0"]


async def test_jobs_start_with_a_clean_environment_and_a_folder_of_their_own(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    login = LoginWith(Login(box.settings), DEEPGRID_SECRET="supervisor's own")
    script = bash('id -un; pwd; echo "$HOME" "${DEEPGRID_SECRET-none}" "${SSH_CLIENT-none}"')
    await Cluster(login, box.settings).submit(key, script, SMALL)
    await login.close()
    await ended(monitor, key)
    user, folder, rest = (await cluster.read_output({key: 0}))[key].decode().splitlines()
    assert user == (box.settings.job_account or box.settings.user)
    assert Path(folder) == box.folder(key) / "run"
    assert rest == f"{folder} none none"


async def test_a_time_limit_is_absolute_and_never_taken_back(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    assert monitor.observe(key).limit_minutes == SMALL.time_limit_minutes
    for asked, given in ((3, SMALL.time_limit_minutes), (17, 17), (17, 17), (9, 17), (90, 90)):
        assert await cluster.set_time_limit(key, asked)
        assert (await cluster.queue(key)).claims[key].limit_minutes == given
    await cluster.cancel(key)
    await until(monitor, key, Phase.ENDED)


async def test_a_job_that_is_gone_or_not_there_yet_needs_no_time_limit(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("true"), SMALL)
    await ended(monitor, key)
    assert not await cluster.set_time_limit(key, 20)
    assert not await cluster.set_time_limit(new_key(), 20)


async def test_a_renamed_job_gets_no_more_time_but_is_cancelled_and_accounted(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """A job's account can rename its job where no guard prevents it."""
    slurm_id = (await cluster.submit(key, bash("sleep 600"), SMALL)).slurm_id
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    box.slurm("scontrol", "update", f"JobId={slurm_id}", "JobName=x", "Comment=y")
    with pytest.raises(SlurmError, match="has another name now"):
        await cluster.set_time_limit(key, 17)
    await cluster.cancel(key)
    end = await until(monitor, key, Phase.ENDED)
    assert (end.slurm_id, end.state, end.stopped) == (slurm_id, "CANCELLED", True)
    assert (await by_accounting(cluster, key)).state == "CANCELLED"


async def test_a_job_of_an_earlier_release_is_found_by_its_name_of_that_time(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs had their id in hex as name. The supervisor is replaced in the middle of a submission."""
    earlier = key.names[1]
    with monkeypatch.context() as release:
        release.setattr(JobKey, "name", earlier)
        submitted = await cluster.submit(key, bash("sleep 600"), SMALL)
    (box.folder(key) / "id").unlink()
    adopted = await cluster.submit(key, bash("sleep 600"), SMALL)
    assert (adopted.slurm_id, adopted.adopted) == (submitted.slurm_id, True)
    assert box.slurm("squeue", "-h", "-a", "-j", str(adopted.slurm_id), "-o", "%j").strip() == earlier != key.name
    assert await cluster.set_time_limit(key, 17)
    await cluster.cancel(key)
    end = await ended(monitor, key)
    await cluster.acknowledge(key)
    assert await ends(cluster, key) == {key: end}
    assert key.comment not in await cluster.spooled()


async def test_a_job_in_the_queue_starts_with_its_new_time_limit(
    held: Callable[[], None], cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("sleep 600"), SMALL)
    assert await cluster.set_time_limit(key, 9)
    held()
    monitor.watch(key)
    assert (await until(monitor, key, Phase.RUNNING)).limit_minutes == 9
    await cluster.cancel(key)


async def test_a_site_that_refuses_more_time_is_an_error(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, tmp_path: Path
) -> None:
    """The supervisor of such a site is not a Slurm operator."""
    account = box.settings.job_account
    if account is None:
        pytest.skip("every account here is an administrator of Slurm")
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nexec runuser -u {account} -- /usr/bin/scontrol "$@"\n')
    scontrol.chmod(0o755)
    login = LoginWith(Login(box.settings), PATH=f"{tmp_path}:{os.environ['PATH']}")
    await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    with pytest.raises(SlurmError, match="denied") as refusal:
        await Cluster(login, box.settings).set_time_limit(key, 17)
    await login.close()
    assert not refusal.value.transient
    assert (await cluster.queue(key)).claims[key].limit_minutes == SMALL.time_limit_minutes
    await cluster.cancel(key)


async def test_output_is_read_from_an_offset_for_many_jobs_at_once(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    binary, silent = new_key(), new_key()
    await cluster.submit(key, bash("echo 0123456789"), SMALL)
    await cluster.submit(binary, bash(r"printf '\000\377\n\r'; head -c 200000 /dev/zero"), SMALL)
    await cluster.submit(silent, bash("true"), SMALL)
    for each in (key, binary, silent):
        await ended(monitor, each)
    assert await cluster.read_output({key: 4, binary: 0, silent: 0, new_key(): 0}, limit=5) == {
        key: b"45678",
        binary: b"\0\xff\n\r\0",
    }
    assert await cluster.read_output({key: 11, binary: 10**9}) == {}
    assert len((await cluster.read_output({binary: 0}, limit=10**6))[binary]) == 200_004


async def test_output_that_is_not_to_be_shipped_is_not_read(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("echo private"), replace(SMALL, ship_output=False))
    await ended(monitor, key)
    assert await cluster.read_output({key: 0}) == {}
    assert (box.folder(key) / "run" / "output.log").read_text() == "private\n"


async def test_the_queue_separates_claims_from_other_jobs_by_the_ledger(
    box: Box, cluster: Cluster, key: JobKey
) -> None:
    account = box.settings.job_account or box.settings.user
    submission = await cluster.submit(key, bash("sleep 600"), SMALL)
    forged = ["--hold", f"--job-name={key.name}", f"--comment={key.comment}", "--wrap=true", "--output=/dev/null"]
    foreign = int(box.slurm("sbatch", "--parsable", f"--uid={account}", *forged))
    others = int(box.slurm("sbatch", "--parsable", "--hold", "--job-name=private", "--wrap=true"))
    held = await cluster.queue(key)
    assert held.claims[key].slurm_id == submission.slurm_id
    assert foreign in [row.slurm_id for row in held.foreign]
    assert others not in [row.slurm_id for row in held.foreign]
    assert await cluster.end_foreign(row for row in held.foreign if row.slurm_id == foreign) == [foreign]
    assert foreign not in [row.slurm_id for row in (await cluster.queue(key)).foreign]
    box.slurm("scancel", str(others))
    await cluster.cancel(key)


async def test_records_come_from_the_spool_and_after_it_from_the_jobs_folder(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    running = new_key()
    await cluster.submit(key, bash("exit 3"), SMALL)
    await cluster.submit(running, bash("sleep 600"), SMALL)
    end = await ended(monitor, key)
    assert end.exit_status == 768
    assert await ends(cluster, key, running, new_key()) == {key: end}
    for _ in range(2):
        await cluster.acknowledge(key)
        assert await ends(cluster, key) == {key: end}
    spool = Path(box.settings.grid_root) / "spool"
    assert not [file for file in spool.iterdir() if key.comment in file.read_text()]
    await cluster.cancel(running)


async def test_a_record_whose_claim_has_an_unwritable_lock_stays_in_the_spool(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """A failed redirection once ended the shell, and the record counted as acknowledged."""
    other = new_key()
    for one in (key, other):
        await cluster.submit(one, bash("true"), SMALL)
        await ended(monitor, one)
    lock = box.folder(key) / "lock"
    lock.unlink()
    lock.mkdir()
    first, second = await asyncio.gather(*map(cluster.acknowledge, (key, other)), return_exceptions=True)
    assert isinstance(first, SlurmUnreachable) and "its folder cannot be written" in first.message
    assert second is None
    lock.rmdir()
    spooled = await cluster.spooled()
    assert (key.comment in spooled, other.comment in spooled) == (True, False)
    await cluster.acknowledge(key)


async def test_controller_and_accounting_agree_without_a_spool_record(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash("exit 3"), SMALL)
    end = await ended(monitor, key)
    await cluster.acknowledge(key)
    (box.folder(key) / "record").unlink()
    monitor.unwatch(key)
    assert await ended(monitor, key) == end, "by the controller's memory"
    assert await by_accounting(cluster, key) == end
