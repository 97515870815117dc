"""Jobs with random names, comments, accounts and folders pass through every script and parser and forge nothing.

Slurm is a fake here that prints users' texts like the real one; `test_random_text_real.py` compares the two.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deepgrid.billing.entries import Span
from deepgrid.errors import GridError, SlurmError, SlurmUnreachable
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.setup.account_findings import examine_accounts
from deepgrid.slurm.setup.checkup import examine
from deepgrid.slurm.setup.guards import ask_guards
from deepgrid.slurm.setup.install import read_site
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.accounting import read_runs
from deepgrid.slurm.supervision.monitor import query_verdicts
from tests.attacks.fake_cluster import INTRUDER
from tests.attacks.fake_grid import BATCH, START, FakeGrid
from tests.attacks.fake_slurm import ENDED
from tests.slurm.support import open_folder

SEEDS = (0, pytest.param(1, marks=pytest.mark.deep))
JOBS = 2000
REQUEST = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=100, gpus=0, time_limit_minutes=5)
A_USER = "another user of the cluster"

pytestmark = pytest.mark.attack(
    "names, comments, accounts and folders of jobs contain forged rows, options, shell code and every byte",
    attacker=A_USER,
    gain="nothing: no claim changes, no command runs, no other job is affected",
    defence="only recorded ids are queried; users' text never shares a record with trusted columns",
)
RENAMED = "waiting"


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def grid(request: pytest.FixtureRequest) -> Iterator[FakeGrid]:
    """A grid and 2,000 hostile jobs."""
    with open_folder() as folder:
        grid = FakeGrid(folder, request.param, JOBS)
        yield grid
        assert grid.slurm.calls(INTRUDER) == [], "the text of a job was executed"


def test_the_texts_hold_every_byte(grid: FakeGrid) -> None:
    texts = "".join(job[field] for job in grid.jobs for field in ("name", "comment", "account", "workdir"))
    assert set(texts.encode(errors="surrogateescape")) == set(range(1, 256))


async def test_no_text_changes_the_state_of_a_claim(grid: FakeGrid) -> None:
    cluster, claims = grid.cluster, grid.claims
    look = await cluster.snapshot(grid.keys)
    for name, claim in claims.items():
        job, queued, ended = claim.job, look.queued(claim.key), look.ended(claim.key)
        if name in ("running", "waiting", "in doubt"):
            assert job is not None and queued is not None
            assert (queued.slurm_id, queued.state, queued.started_at) == (job["jobid"], job["state"], job["start"])
        else:
            assert queued is None, name
        if name == "ended":
            assert job is not None and ended is not None
            assert (ended.slurm_id, ended.ended_at, ended.ran_s) == (job["jobid"], START + 90, 90)
        else:
            assert ended is None, name
    assert look.held == sum(job["state"] not in ENDED for job in grid.jobs)
    _, states = await query_verdicts(cluster, grid.keys)
    phases = {name: states[claim.key].phase for name, claim in claims.items()}
    assert phases == {
        "running": Phase.RUNNING, "waiting": Phase.QUEUED, "ended": Phase.ENDED, "failed": Phase.ENDED,
        "in doubt": Phase.RUNNING, "in doubt, ended": Phase.ABSENT, "in doubt, lost": Phase.ABSENT,
        "refused": Phase.ABSENT, "lost": Phase.ABSENT,
    }  # fmt: skip
    assert (states[claims["failed"].key].exit_status, states[claims["failed"].key].ran_s) == (768, 50)


async def test_no_text_changes_the_books_or_the_queue(grid: FakeGrid) -> None:
    cluster, claims = grid.cluster, grid.claims
    runs = await read_runs(cluster, Span(START, START + 10_000), grid.keys[0], grid.keys)
    found = {(run.job_id, run.slurm_id, run.state, run.started_at, run.ended_at) for run in runs.runs}
    ran = [claims[name] for name in ("running", "waiting", "ended", "failed", "in doubt")]
    assert found == {
        (claim.key.job_id, job["jobid"], job["state"], job["start"], job["end"]) for claim in ran if (job := claim.job)
    }
    holdings = await cluster.queue(grid.keys[0])
    assert {key: job.slurm_id for key, job in holdings.claims.items()} == {
        claims[name].key: claims[name].job["jobid"]
        for name in ("running", "waiting")  # type: ignore[index]
    }
    ids = {claim.job["jobid"] for claim in claims.values() if claim.job and claim.known} - {1900}
    customers = {claims["running"].user, claims["waiting"].user} - {claims["in doubt"].user}
    assert {(row.slurm_id, int(row.user)) for row in holdings.foreign} == {
        (job["jobid"], job["userid"])
        for job in grid.jobs
        if job["userid"] in customers and job["jobid"] not in ids and job["state"] not in ENDED
    }


async def test_effects_reach_only_the_jobs_on_record(grid: FakeGrid) -> None:
    cluster, claims = grid.cluster, grid.claims
    adopted = await cluster.submit(claims["in doubt"].key, "#!/bin/sh\n", REQUEST)
    assert (adopted.slurm_id, adopted.adopted) == (claims["in doubt"].job["jobid"], True)  # type: ignore[index]
    late = await cluster.submit(claims["in doubt, ended"].key, "#!/bin/sh\n", REQUEST)
    assert (late.slurm_id, late.adopted) == (claims["in doubt, ended"].job["jobid"], True)  # type: ignore[index]
    grid.try_again("in doubt, lost", s_ago=10)  # earlier tests may have taken longer than an attempt stays open
    with pytest.raises(SlurmUnreachable, match="may still reach Slurm"):
        await cluster.submit(claims["in doubt, lost"].key, "#!/bin/sh\n", REQUEST)
    with pytest.raises(SlurmError, match="refused"):
        await cluster.submit(claims["refused"].key, "#!/bin/sh\n", REQUEST)
    may = {}
    for name, claim in claims.items():
        given = False
        if name == RENAMED:  # it is ended by its id, but its time limit is not extended
            with pytest.raises(SlurmError, match="has another name now"):
                await cluster.set_time_limit(claim.key, 77)
        else:
            given = await cluster.set_time_limit(claim.key, 77)
        await cluster.cancel(claim.key)
        if given or name in ("running", "waiting", "in doubt"):
            assert claim.job is not None
            may[str(claim.job["jobid"])] = claim.user
    assert len(may) == 3
    await cluster.batch.remove(BATCH)
    cancelled = may | {"1901": claims["running"].user}
    assert sorted(argv for _, _, argv in grid.slurm.calls("scancel")) == sorted(
        [f"--user={user}", slurm_id] for slurm_id, user in cancelled.items()
    )
    renamed = str(claims[RENAMED].job["jobid"])  # type: ignore[index]
    assert sorted(argv for _, _, argv in grid.slurm.calls("scontrol") if argv[0] == "update") == sorted(
        ["update", f"JobId={slurm_id}", "TimeLimit=77"] for slurm_id in may if slurm_id != renamed
    )


async def test_foreign_jobs_are_ended_with_the_account_that_they_must_have(grid: FakeGrid) -> None:
    cluster, claims = grid.cluster, grid.claims
    users = {claim.user for claim in claims.values()}
    own = [job for job in grid.jobs if job["userid"] in users and job["state"] == "RUNNING" and job["jobid"] >= 2000][
        :4
    ]
    other = [job for job in grid.jobs if job["userid"] not in users and job["state"] == "RUNNING"][:2]
    rows = [Row(job["jobid"], str(job["userid"]), "RUNNING") for job in own]
    before = len(grid.slurm.calls("scancel"))
    ended = await cluster.end_foreign([*rows, *(Row(job["jobid"], str(min(users)), "RUNNING") for job in other)])
    assert sorted(ended) == sorted(row.slurm_id for row in rows)
    assert sorted(argv for _, _, argv in grid.slurm.calls("scancel")[before:]) == sorted(
        [f"--user={row.user}", str(row.slurm_id)] for row in rows
    )


async def test_only_its_own_record_is_kept_with_a_claim(grid: FakeGrid) -> None:
    cluster = grid.cluster
    spool = grid.folder / "grid" / "spool"
    before = {file.name for file in spool.iterdir()}
    assert len(await cluster.spooled()) == len(before), "each record has one comment"
    await asyncio.gather(*map(cluster.acknowledge, grid.keys))
    kept = {file.parent.name: file.read_text() for file in grid.folder.glob("grid/jobs/*/record")}
    ended = grid.claims["ended"]
    assert ended.job is not None
    assert kept.keys() == {ended.key.folder}
    (row,) = Completions.parse(kept[ended.key.folder])
    assert (row.slurm_id, row.comment, row.ended_at) == (ended.job["jobid"], ended.key.comment, START + 90)
    assert before - {file.name for file in spool.iterdir()} == {f"{ended.job['jobid']}.{START + 90}"}


async def test_a_complaint_with_any_text_is_a_failure(grid: FakeGrid) -> None:
    """The second line of a complaint must not pass for an answer."""
    cluster, claim = grid.cluster, grid.claims["running"]
    for program in ("scancel", "scontrol", "squeue"):
        for _ in range(3):
            grid.slurm.complaints = {program: f"error: no\n{grid.texts.text()}"}
            grid.write_state()
            with pytest.raises(GridError):
                await (cluster.set_time_limit(claim.key, 99) if program == "scontrol" else cluster.cancel(claim.key))
    grid.slurm.complaints = {}
    grid.write_state()


async def test_the_doctor_and_the_plan_of_the_hooks_execute_no_text(grid: FakeGrid) -> None:
    assert await examine(grid.login, grid.cluster)
    assert await examine_accounts(grid.login, grid.settings)
    assert await ask_guards(grid.login, grid.settings)
    with suppress(GridError):
        await read_site(grid.login, grid.settings)


async def test_no_folder_of_a_job_leads_to_another_claim(grid: FakeGrid) -> None:
    """Storage of jobs is found by recorded id and account, and nothing else is removed."""
    claim = grid.claims["ended"]
    assert claim.job is not None
    for user in {str(one.user) for one in grid.claims.values()}:
        (grid.folder / "storage" / user).mkdir()
    own = grid.folder / "storage" / str(claim.user) / f"{claim.key.name}.{claim.job['jobid']}"
    for one in grid.claims.values():
        place = grid.folder / "storage" / str(one.user)
        for text in (grid.texts.text(200), f"\n{one.key.name}.{claim.job['jobid']}", f"{one.key.name}.1\n2", own.name):
            (place / (text.replace("/", "|") or "none")).mkdir(exist_ok=True)
        shutil.chown(place, one.account)
    shutil.chown(own, claim.account)
    os.utime(grid.folder / "grid" / "jobs" / claim.key.folder, (1, 1))
    leftovers, root = grid.cluster.leftovers, str(grid.folder / "storage")
    found = await leftovers.find(grid.keys[0], root, keep_days=1)
    assert {(one.key, one.storage) for one in found} == {(claim.key, ""), (claim.key, own.name)}
    places = {file for file in grid.folder.glob("*/*/*") if file != own}
    assert len(await leftovers.remove(grid.keys[0], root, found)) == 2
    gone = grid.folder / "grid" / "jobs" / claim.key.folder
    assert {file for file in grid.folder.glob("*/*/*") if file.parent.name != "bin"} == places - {gone}
