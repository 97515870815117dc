"""One sbatch per claim, and a payload that runs at most once, after any earlier failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deepgrid.errors import InputError, SlurmError, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import (
    INTENT_PATIENCE_S,
    Submission,
    SubmitRequest,
    Wanted,
    parse_answer,
    submissions_command,
)
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, Box, LoginWith, bash, ended, ends, new_key, until

IMPOSSIBLE = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=10**6, gpus=0, time_limit_minutes=5)


async def test_submitting_again_finds_the_same_job(box: Box, cluster: Cluster, key: JobKey) -> None:
    first = await cluster.submit(key, bash("true"), SMALL)
    second = await cluster.submit(key, bash("true"), SMALL)
    assert (first.adopted, second.adopted) == (False, True)
    assert second.slurm_id == first.slurm_id
    assert box.ids(key) == [first.slurm_id]


async def test_concurrent_submissions_make_one_job(box: Box, cluster: Cluster, key: JobKey) -> None:
    other = Login(box.settings)
    try:
        clusters = [cluster, Cluster(other, box.settings)] * 3
        found = await asyncio.gather(*(c.submit(key, bash("true"), SMALL) for c in clusters))
    finally:
        await other.close()
    assert len({submission.slurm_id for submission in found}) == 1
    assert sum(not submission.adopted for submission in found) == 1
    assert len(box.ids(key)) == 1


class CountingLogin(Login):
    """A login that counts its commands."""

    commands = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        self.commands += 1
        return await super().run(argv, stdin=stdin, timeout_s=timeout_s)


async def submit_until_known(cluster: Cluster, key: JobKey) -> Submission:
    """Submit as a carrier does: repeat while it is unknown whether Slurm has the job."""
    async with asyncio.timeout(INTENT_PATIENCE_S / 2):
        while True:
            try:
                return await cluster.submit(key, bash("true"), SMALL)
            except SlurmUnreachable:
                await asyncio.sleep(0.2)


@pytest.mark.parametrize("trace", ["queue", "spool", "accounting"])
async def test_a_job_whose_submission_answer_was_lost_is_found(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, trace: str
) -> None:
    """The connection broke after sbatch: there is an intent without an id. All sources are asked for the job."""
    first = await cluster.submit(key, bash("sleep 600" if trace == "queue" else "true"), SMALL)
    if trace != "queue":
        await ended(monitor, key)
    if trace == "accounting":
        await cluster.acknowledge(key)
    (box.folder(key) / "id").unlink()
    again = await submit_until_known(cluster, key)
    assert (again.slurm_id, again.adopted) == (first.slurm_id, True)
    assert box.ids(key) == [first.slurm_id]
    await cluster.cancel(key)


@pytest.mark.parametrize("age", [0, 10], ids=["of this login node", "of one whose clock is ahead"])
async def test_a_young_intent_without_a_job_is_not_repeated_and_an_old_one_is(
    box: Box, cluster: Cluster, key: JobKey, age: int
) -> None:
    box.folder(key).mkdir()
    (box.folder(key) / "intent").write_text(f"{int(time.time()) + age}\n")
    with pytest.raises(SlurmUnreachable, match="may still reach Slurm"):
        await cluster.submit(key, bash("true"), SMALL)
    assert box.ids(key) == []
    (box.folder(key) / "intent").write_text(f"{int(time.time()) - 600}\n")
    assert not (await cluster.submit(key, bash("true"), SMALL)).adopted


async def test_a_cancelled_claim_is_never_submitted(box: Box, cluster: Cluster, key: JobKey) -> None:
    await cluster.cancel(key)
    with pytest.raises(SlurmError, match="cancelled") as refusal:
        await cluster.submit(key, bash("true"), SMALL)
    assert not refusal.value.transient
    assert box.ids(key) == []


async def test_a_tombstone_without_a_spare_file_is_durable(
    box: Box, login: Login, cluster: Cluster, key: JobKey, state_folder: Path
) -> None:
    """A power cut after the answer must not let the job start. A claim of an earlier version has no spare file."""
    synced, programs = state_folder / f"synced-{key.job_id}", state_folder / f"programs-{key.job_id}"
    programs.mkdir(mode=0o755)
    (programs / "sync").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {synced}\nexec /usr/bin/sync "$@"\n')
    (programs / "sync").chmod(0o755)
    await cluster.submit(key, bash("true"), SMALL)
    (box.folder(key) / "spare").unlink()
    watched = LoginWith(login, PATH=f"{programs}:/usr/local/bin:/usr/bin:/bin")
    await Cluster(watched, box.settings).cancel(key)
    assert synced.read_text().splitlines() == [f"{box.folder(key)}/tombstone", str(box.folder(key))]


async def test_cancelling_while_it_waits_ends_it_without_a_start(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, held: Callable[[], None]
) -> None:
    await cluster.submit(key, bash("echo ran"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.QUEUED)
    await cluster.cancel(key)
    held()
    end = await ended(monitor, key)
    assert (end.state, end.started_at) == ("CANCELLED", None)
    assert await cluster.read_output({key: 0}) == {}


async def test_claims_that_are_submitted_together_share_a_command_and_have_their_own_answers(box: Box) -> None:
    login = CountingLogin(box.settings)
    cluster, wanted = Cluster(login, box.settings), [SMALL, IMPOSSIBLE, SMALL, SMALL]
    keys = [new_key() for _ in wanted]
    submissions = (cluster.submit(key, bash("true"), one) for key, one in zip(keys, wanted, strict=True))
    first, refused, *others = await asyncio.gather(*submissions, return_exceptions=True)
    await login.close()
    assert isinstance(refused, SlurmError) and "node configuration" in refused.message
    ids = [found.slurm_id for found in (first, *others) if isinstance(found, Submission)]
    assert [box.ids(key) for key in keys if key != keys[1]] == [[slurm_id] for slurm_id in ids]
    assert login.commands == 1


async def test_a_refusal_is_final_has_slurms_reason_and_leaves_no_run(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """Slurm keeps a FAILED record of such a job, which must not count as the job's end."""
    for _ in range(2):
        with pytest.raises(SlurmError, match="Requested node configuration is not available") as refusal:
            await cluster.submit(key, bash("true"), IMPOSSIBLE)
        assert not refusal.value.transient
    assert len(box.ids(key)) <= 1
    monitor.watch(key)
    assert await until(monitor, key, Phase.ABSENT, Phase.ENDED) == await until(monitor, key, Phase.ABSENT)
    assert await ends(cluster, key) == {}


def submission_of(box: Box, key: JobKey, script: bytes) -> tuple[list[str], bytes]:
    """Return the command that submits this script, and its standard input."""
    account = box.settings.account_of("")
    wanted = Wanted(key, SMALL, script, account)
    return submissions_command(box.settings, account, [wanted.arguments(box.settings)]), script


async def test_an_incomplete_script_is_not_submitted(box: Box, cluster: Cluster, key: JobKey) -> None:
    """For the login node, a connection that breaks while the script is sent looks like the script's end."""
    login = Login(box.settings)
    whole = b"#!/bin/sh\necho all of it\n"
    command, stdin = submission_of(box, key, whole)
    done = await login.run(command, stdin=stdin[:-5])
    await login.close()
    with pytest.raises(SlurmUnreachable, match="cut off"):
        parse_answer(done, key)
    assert box.ids(key) == []


async def test_a_full_disk_of_the_login_node_is_a_transient_error(box: Box, cluster: Cluster, key: JobKey) -> None:
    login, script = Login(box.settings), b"#!/bin/sh\ntrue\n"
    no_byte_more = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]
    command, stdin = submission_of(box, key, script)
    done = await login.run([*no_byte_more, *command], stdin=stdin)
    await login.close()
    with pytest.raises(SlurmUnreachable, match="could not write"):
        parse_answer(done, key)
    assert not (await cluster.submit(key, bash("true"), SMALL)).adopted


async def test_a_script_without_a_shell_is_the_customers_fault(cluster: Cluster, key: JobKey) -> None:
    with pytest.raises(InputError):
        await cluster.submit(key, "print('hello')", SMALL)


async def test_the_script_arrives_unchanged_and_is_not_kept(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    secret = 'it\'s "$HOME" `id` %j \\n ü secret-7f3a'
    await cluster.submit(key, bash(f"cat <<'END'\n{secret}\nEND\n#{'x' * 300_000}"), SMALL)
    await ended(monitor, key)
    assert (await cluster.read_output({key: 0}))[key].decode() == f"{secret}\n"
    (box.folder(key) / "output.log").unlink()
    kept = [file for file in box.folder(key).rglob("*") if file.is_file() and "secret-7f3a" in file.read_text()]
    assert kept == []


async def test_a_job_cannot_forge_or_hide(box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    """Its account can change neither its identity in Slurm nor the supervisor's files."""
    if box.settings.job_account is None:
        pytest.skip("not root: jobs and supervisor share one account")
    victim = new_key()
    tricks = [
        'scontrol update JobId="$SLURM_JOB_ID" Comment=other',
        'scontrol update JobId="$SLURM_JOB_ID" JobName=other',
        f'sbatch --comment={victim.comment} --job-name={victim.name} --wrap="exit 0"',
        "touch ../tombstone",
        "cat ../id",
        "rm -f ../output.log && test ! -e ../output.log",
        "ln -sf /etc/shadow ../output.log",
        "ls ../..",
        "ls ../../../spool",
    ]
    body = "\n".join(f"( {trick} ) > /dev/null 2>&1 && echo 'worked: {trick}'" for trick in tricks)
    await cluster.submit(key, bash(f"{body}\necho done"), SMALL)
    await ended(monitor, key)
    assert (await cluster.read_output({key: 0}))[key] == b"done\n"
    assert box.ids(victim) == []
