"""200 held jobs with random texts in a real Slurm forge and execute nothing, and the fake Slurm behaves the same."""

from __future__ import annotations

import asyncio
import os
import pwd
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deepgrid.billing.entries import Span
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.accounting import read_runs
from deepgrid.slurm.supervision.monitor import query_verdicts
from deployments.onemachine.slurm import ClusterSpec
from tests.attacks.fake_cluster import FakeSlurm, LocalLogin, slurm_job
from tests.attacks.random_text import Texts
from tests.slurm.support import WAIT_S, Box, bash, new_key, open_folder, running_box

JOBS, STARTED, AT_ONCE, SEED = 200, 40, 4, 14
SHORT = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=100, gpus=0, time_limit_minutes=5)
CONTROLS = {chr(number) for number in (*range(1, 32), 127)}
SPACES = dict.fromkeys(map(ord, CONTROLS), " ")
ATTACK = pytest.mark.attack(
    "200 held jobs in a real Slurm whose names and comments contain forged rows, shell code and every byte",
    attacker="another user of the cluster",
    gain="nothing: claims, bills and other jobs do not change, and no command runs",
    defence="only recorded ids are queried; users' text never shares a record with trusted columns",
)
pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Held:
    """A job that Slurm accepted, with the texts of its submission."""

    slurm_id: int
    user: int
    name: str
    comment: str


@asynccontextmanager
async def cluster_of(box: Box) -> AsyncIterator[Cluster]:
    login = Login(box.settings)
    try:
        yield Cluster(login, box.settings)
    finally:
        await login.close()


def accounts(box: Box) -> list[str]:
    """Return an ordinary Slurm user, and the account of the claims."""
    own = box.settings.job_account or box.settings.user
    return ["games", own] if os.getuid() == 0 else [own]


def become(account: str) -> list[str]:
    """Return the arguments before a command that run it as this account."""
    return ["setpriv", f"--reuid={account}", f"--regid={account}", "--clear-groups"] if os.getuid() == 0 else []


async def sbatch(box: Box, account: str, name: str, comment: str) -> tuple[int | None, str]:
    """Submit a held job as `account`. Returns its id, or None and the complaint."""
    options = ["--parsable", "-H", "--chdir=/", "--output=/dev/null", f"--job-name={name}", f"--comment={comment}"]
    process = await asyncio.create_subprocess_exec(
        *map(os.fsencode, [*become(account), "sbatch", *options, "--wrap=true"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **box.site.environment(box.name)},
    )  # fmt: skip
    out, complaint = await process.communicate()
    return (int(out) if out.strip().isdigit() else None), complaint.decode(errors="replace")


async def submit_all(box: Box, texts: Texts, claims: Sequence[JobKey]) -> list[Held]:
    """Submit until Slurm has accepted JOBS jobs, some of them with the name of a claim."""
    held: list[Held] = []
    exact = {key.comment for key in claims}

    async def submit_some(count: int) -> None:
        while count:
            account = texts.rng.choice(accounts(box))
            name = texts.rng.choice(claims).name if texts.rng.random() < 0.2 else texts.text()
            comment = texts.rng.choice((texts.text(), f"deepgrid:{texts.text()}"))
            if comment in exact:  # with this name in the claim's account it would be the claim's own job
                continue
            slurm_id, complaint = await sbatch(box, account, name, comment)
            assert slurm_id is not None, (name, comment, complaint)
            held.append(Held(slurm_id, pwd.getpwnam(account).pw_uid, name, comment))
            count -= 1

    await asyncio.gather(*(submit_some(JOBS // AT_ONCE) for _ in range(AT_ONCE)))
    return held


def shown(job: SlurmJob) -> tuple[object, ...]:
    return job.phase, job.slurm_id, job.started_at, job.ended_at, job.ran_s


async def settled(cluster: Cluster, keys: Sequence[JobKey]) -> dict[JobKey, SlurmJob]:
    """Return the states of the claims, once the first runs, the second waits and the third has ended."""
    deadline = time.monotonic() + WAIT_S
    while True:
        _, states = await query_verdicts(cluster, keys)
        if [states[key].phase for key in keys[:3]] == [Phase.RUNNING, Phase.QUEUED, Phase.ENDED]:
            return states
        assert time.monotonic() < deadline, states
        await asyncio.sleep(0.2)


async def submit_claims(box: Box, cluster: Cluster) -> list[JobKey]:
    """Return claims that run, wait or have ended, and one whose sbatch never answered."""
    keys = [new_key() for _ in range(4)]
    await cluster.submit(keys[2], bash("true"), SHORT)
    await cluster.submit(keys[0], bash("sleep 600"), SHORT)
    for key in (keys[1], keys[3]):
        submission = await cluster.submit(key, bash("true"), SHORT)
        box.slurm("scontrol", "hold", str(submission.slurm_id))
    (box.folder(keys[3]) / "id").unlink()
    (box.folder(keys[3]) / "intent").write_text(f"{int(time.time()) - 30}\n")
    ledger = Path(box.settings.grid_root) / "ledger"
    ledger.write_text("".join(f"{line}\n" for line in ledger.read_text().splitlines() if keys[3].folder not in line))
    return keys


@ATTACK
async def test_no_text_in_a_real_slurm_changes_a_claim() -> None:
    spec = ClusterSpec("texts", nodes=1, cpus_per_node=2, guard=False)
    with running_box(spec) as box, open_folder() as folder:
        canary = folder / "canary"
        async with cluster_of(box) as cluster:
            keys = await submit_claims(box, cluster)
            before = await settled(cluster, keys)
            user = pwd.getpwnam(accounts(box)[-1]).pw_uid
            known = [(key, before[key].slurm_id or 0, user) for key in keys]
            held = await submit_all(box, Texts(SEED, known, f"touch {canary}"), keys)
            await check_the_fake(box, held, folder)
            after = await settled(cluster, keys)
            assert {key: shown(job) for key, job in after.items()} == {key: shown(job) for key, job in before.items()}
            assert (await cluster.submit(keys[3], bash("true"), SHORT)).adopted
            assert await cluster.set_time_limit(keys[1], 77)
            await rename_itself(box, before[keys[0]])
            await cluster.cancel(keys[0])
            state = ("squeue", "-h", "-a", "-t", "all", "-j", str(before[keys[0]].slurm_id), "-o", "%T")
            assert box.slurm(*state).strip() in ("COMPLETING", "CANCELLED")
            await asyncio.gather(*map(cluster.acknowledge, keys))
            ids = sorted(job.slurm_id for job in held)
            limits = {row.slurm_id: row.limit_minutes for row in await cluster.remembered() if row.state == "PENDING"}
            assert sorted(ids) == sorted(number for number in limits if number in ids), "none of them was changed"
            assert [number for number, limit in limits.items() if limit == 77] == [before[keys[1]].slurm_id]
            # Accounting reports jobs of a period only if they could have started.
            box.slurm("scancel", *map(str, ids[STARTED:]))
            box.slurm("scontrol", "release", ",".join(map(str, ids[:STARTED])))
            await check_the_books(box, cluster, keys, ids)
        assert not canary.exists(), "the text of a job was executed"


async def rename_itself(box: Box, job: SlurmJob) -> None:
    """The claim's account gives its job another name and comment. No hook forbids this here."""
    await asyncio.to_thread(
        box.slurm, *become(accounts(box)[-1]), "scontrol", "update", f"JobId={job.slurm_id}", "JobName=x", "Comment=y"
    )


def ended_ids(rows: Iterable[Row]) -> set[int]:
    return {row.slurm_id for row in rows if row.ended_at is not None}


async def check_the_books(box: Box, cluster: Cluster, keys: Sequence[JobKey], ids: Sequence[int]) -> None:
    """Records of ended hostile jobs in accounting and from the completion hook match no claim."""
    now = int(time.time())
    deadline = time.monotonic() + WAIT_S
    while len(ended_ids(await cluster.accounting(now - 86400) or ()) & set(ids)) < STARTED:
        assert time.monotonic() < deadline, "accounting lacks jobs"
        await asyncio.sleep(0.5)
    runs = await read_runs(cluster, Span(now - 3600, now + 3600), keys[0], keys)
    assert {run.slurm_id for run in runs.runs}.isdisjoint(ids)
    assert {run.job_id for run in runs.runs} == {key.job_id for key in keys}
    spool = {file.name for file in (Path(box.settings.grid_root) / "spool").glob("[0-9]*")}
    assert len(await cluster.spooled()) == len(spool), "each record has one comment"
    look = await cluster.snapshot(keys)
    ended = [look.ended(key) for key in keys]
    assert {job.slurm_id for job in ended if job}.isdisjoint(ids)
    records = [file.read_text() for file in Path(box.settings.grid_root).glob("jobs/*/record")]
    assert len(records) >= 1
    assert not any(f"job_id={number}\n" in record for record in records for number in ids)


async def check_the_fake(box: Box, held: Sequence[Held], folder: Path) -> None:
    """The same commands give the same bytes from both."""
    by_id = {job.slurm_id: job for job in held}
    order = [int(number) for number in box.slurm("squeue", "-h", "-a", "-o", "%A").split()]
    fake, login = FakeSlurm(folder), LocalLogin(folder)
    fake.jobs = [
        slurm_job(job.slurm_id, job.user, job.name, job.comment, "PENDING", limit=10, reason="JobHeldUser")
        for job in (by_id[number] for number in order if number in by_id)
    ]
    fake.write()
    named = next(job for job in held if job.name.startswith("dg-"))
    some = [str(job.slurm_id) for job in held[:20]]
    unknown = str(max(order) + 1000)
    for argv in (
        ["squeue", "-h", "-a", "-u", str(named.user), "-n", named.name, "-t", "all", "-o", "%A"],
        ["squeue", "-h", "-a", "-u", str(named.user), "-j", str(named.slurm_id), "-o", "%A"],
        ["squeue", "-h", "-a", "-j", unknown, "-o", "%A"],
        *(["squeue", "-h", "-a", "-t", "all", "-j", number, "-o", "%k|"] for number in some),
        *(["squeue", "-h", "-a", "-j", number, "-o", "%A|%j|%k|%Z|%a|%T|%U"] for number in some),
    ):
        await ask_both(box, login, argv)
    real, said = await asyncio.to_thread(ask, box, Squeue().argv()), await login.run(Squeue().argv())
    rows = [row for row in Squeue.parse(real.stdout.decode()) if row.slurm_id in by_id]
    assert [replace(row, taken_at=1) for row in rows] == Squeue.parse(said.text)
    assert len(rows) == JOBS


async def ask_both(box: Box, login: LocalLogin, argv: Sequence[str]) -> None:
    """Check that the real and the fake Slurm print the same, byte for byte."""
    real, said = await asyncio.to_thread(ask, box, argv), await login.run(argv)
    assert (said.exit_status, said.stdout, said.stderr) == (real.returncode, real.stdout, real.stderr), argv


def ask(box: Box, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, **box.site.environment(box.name)}
    return subprocess.run(argv, env=env, capture_output=True, check=False)


@pytest.mark.attack(
    "random names and comments on a cluster with the submit hook",
    attacker="another user of the cluster",
    gain="its own job with a plain line as name and comment",
    defence="the hook refuses control characters and comments of the grid",
)
async def test_the_hook_accepts_exactly_the_texts_that_are_plain_lines() -> None:
    with running_box(ClusterSpec("plain", nodes=1, accounting=False)) as box:
        texts = Texts(SEED, [(new_key(), 1, 5)], "false")
        for _ in range(40):
            name, comment = (texts.rng.choice((texts.text(), texts.text().translate(SPACES))) for _ in range(2))
            slurm_id, complaint = await sbatch(box, accounts(box)[0], name, comment)
            plain = CONTROLS.isdisjoint(name + comment) and not comment.startswith("deepgrid:")
            assert (slurm_id is not None) == plain, (name, comment, complaint)
