"""After faults the books explain every job, and the next run finds one fraud of each kind that a person can commit.

The contract itself prevents frauds with money, so these are planted in columns (`tests/billing/test_kinds.py`). The
same holds for a fraud that takes an hour to count.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.billing.rules.kinds import Kind
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.protocol import SubmitRequest
from deployments.onemachine.grid import LocalGrid
from orchestration.grid_events import BOOKS_DIFFER
from tests.grid.books import all_cold, artifact, submit_many, supervised_by_nobody
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import run_now, unscheduled
from tests.grid.support import HEAD
from tests.grid.writers import writer_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3600)]

JOBS = int(os.environ.get("DEEPGRID_TEST_JOBS", "200"))
BOOKS = ("reconcile_billing/alpha", "reconcile_billing/beta", "reconcile_billing/grid")
LARGE = HEAD.replace("cpusPerTask: 1, memPerCpu: 100", "cpusPerTask: 2, memPerCpu: 50")  # as much memory as one CPU has
RICH = HEAD.replace("memPerCpu: 100", "memPerCpu: 200")
PADDED = 8
RUNS_ON_S = 180

# Each fraud: the batch script's command, the reported end, its minutes and exit status. No command: nothing runs.
FRAUDS: Mapping[Kind, tuple[str, JobStatus, int, int]] = {
    Kind.MINUTES: ("true", JobStatus.FINISHED, 3, 0),
    Kind.NO_RUN: ("", JobStatus.FINISHED, 1, 0),
    Kind.RAN_ON: (f"sleep {RUNS_ON_S}", JobStatus.FINISHED, 2, 0),
    Kind.STILL_RUNNING: ("sleep 1100", JobStatus.FINISHED, 2, 0),
    Kind.ANOTHER_END: ("exit 1", JobStatus.FINISHED, 1, 0),
    Kind.ANOTHER_EXIT: ("exit 3", JobStatus.FAILED, 1, 4 << 8),
    Kind.RAN_TWICE: ("true", JobStatus.FINISHED, 1, 0),
    Kind.RAN_EARLY: ("", JobStatus.FINISHED, 1, 0),
    Kind.FEWER_CPUS: ("true", JobStatus.FINISHED, 1, 0),
    Kind.LESS_MEMORY: ("true", JobStatus.FINISHED, 1, 0),
}


async def test_every_job_is_explained_and_every_fraud_found(customer: Customer) -> None:
    grid = customer.grid
    async with unscheduled(grid, *BOOKS), await Chain.connect(AddressBook.load(grid.book)) as chain:
        ids = [*await submit_many(customer, JOBS // 2), *await submit_many(customer, JOBS // 4, "beta", "exit 3")]
        ids += await submit_many(customer, JOBS - JOBS // 2 - JOBS // 4, "beta", "sleep 2")
        await faults(grid, ids)
        await all_cold(chain, ids)
        for cluster in ("alpha", "beta"):
            run = await run_now(grid, f"reconcile_billing/{cluster}", cluster=cluster)
            assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
            assert "balance to the wei" in run["state"]["message"]

        async with supervised_by_nobody(grid, "beta"):
            planted = await plant(customer)
            run = await run_now(grid, "reconcile_billing/beta", cluster="beta")
        assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", BOOKS_DIFFER)
        rows = json.loads((await artifact(grid, "reconciliation-beta-jobs"))["data"])
        found = {row["job"]: row["difference"] for row in rows if row["difference"]}
        assert found == {job_id: str(kind) for job_id, kind in planted.items()}
        page = (await artifact(grid, "reconciliation-beta"))["data"]
        for job_id, kind in planted.items():
            assert f"**job {job_id}**, **{kind}**" in page
        everybody = await run_now(grid, "reconcile_billing/grid", operator="grid")
        assert everybody["state"]["type"] == "COMPLETED", everybody["state"]["message"]


async def faults(grid: LocalGrid, ids: list[int]) -> None:
    """Crash a supervisor, stop accounting for a while, and cancel some jobs, while the jobs run."""
    grid.kill("supervisor-alpha")
    grid.table.stop("slurmdbd")
    async with writer_of(grid, "customer") as writer:
        for job_id in ids[:: max(1, len(ids) // 5)]:
            await writer.cancel_job(job_id)
    await asyncio.sleep(5)
    await asyncio.to_thread(grid.start, "supervisor-alpha")
    await asyncio.to_thread(grid.slurm.start, grid.table)


async def plant(customer: Customer) -> dict[int, Kind]:
    """Commit the frauds on beta, whose supervisor is stopped. Returns the kind of each job."""
    grid = customer.grid
    early, sleeps = sbatch(customer, "true"), asyncio.create_task(asyncio.sleep(70))
    wanted = dict.fromkeys(FRAUDS, 1) | {Kind.A_MINUTE_TOO_MUCH: PADDED, Kind.RETURNED_RAN: 1}
    heads = {Kind.FEWER_CPUS: LARGE, Kind.LESS_MEMORY: RICH}
    login = Login(settings := grid.slurm.login("beta"))
    cluster, planted = Cluster(login, settings), dict[int, Kind]()
    try:
        async with writer_of(grid, "beta") as beta, asyncio.TaskGroup() as frauds:
            await sleeps  # for the run that begins long before its claim
            for kind, count in wanted.items():
                for job_id in await submit_many(customer, count, "beta", head=heads.get(kind, HEAD)):
                    planted[job_id] = kind
            for _ in planted:
                key = await claimed(customer, beta)
                frauds.create_task(commit(customer, cluster, beta, key, planted[key.job_id], early))
            unknown = JobKey(key.chain_id, key.contract, 10**7, int(time.time()))
            await cluster.submit(unknown, script("true"), request(customer))
            await until_in_slurm(cluster, unknown, ended=True)
    finally:
        await login.close()
    return planted | {unknown.job_id: Kind.NOT_ON_CHAIN}


async def claimed(customer: Customer, beta: Writer) -> JobKey:
    """Claim the next job for beta. The meta-scheduler assigns more as others end."""
    book, deadline = beta.chain.book, time.monotonic() + PATIENCE_S
    while (claim := await beta.claim_next()) is None:
        assert time.monotonic() < deadline
        await asyncio.sleep(1)
    job = await customer.job(claim.job_id)
    return JobKey(book.chain_id, book.meta_scheduler, job.id, job.claimed_at)


async def commit(customer: Customer, cluster: Cluster, beta: Writer, key: JobKey, kind: Kind, early: int) -> None:
    """Let Slurm run what the fraud runs, and report what is not so."""
    command, status, minutes, code = FRAUDS.get(kind, ("true", JobStatus.FINISHED, 2, 0))
    goes_on = kind in (Kind.RAN_ON, Kind.STILL_RUNNING)
    if command:
        await cluster.submit(key, script(command), request(customer))
        await until_in_slurm(cluster, key, ended=not goes_on)
    if kind is Kind.RETURNED_RAN:
        await beta.refuse_job(key.job_id)
        return
    if kind in (Kind.RAN_EARLY, Kind.RAN_TWICE):
        enter(customer, early if kind is Kind.RAN_EARLY else sbatch(customer, "true"), key)
    await beta.set_running(key.job_id, 1)
    started_at = (await customer.job(key.job_id)).started_at
    while await beta.chain.now() <= started_at + 60 * (minutes - 1):  # the contract bills no minute that has not begun
        await asyncio.sleep(1)
    await beta.settle(key.job_id, status, minutes, exit_status=code)
    if kind is Kind.RAN_ON:
        await until_in_slurm(cluster, key, ended=True)
    if kind is Kind.STILL_RUNNING:
        await asyncio.sleep(70)


async def until_in_slurm(cluster: Cluster, key: JobKey, *, ended: bool) -> None:
    """Wait for the start or the end of a job."""
    deadline = time.monotonic() + PATIENCE_S + RUNS_ON_S
    while True:
        snapshot = await cluster.snapshot([key])
        end, job = snapshot.ended(key), snapshot.queued(key)
        if end is not None or (not ended and job is not None and job.started_at is not None):
            return
        assert time.monotonic() < deadline, (key, job)
        await asyncio.sleep(1)


def request(customer: Customer) -> SubmitRequest:
    """Return a request for one CPU and 100 MB, whatever was sold."""
    address = Wallet.load(customer.grid.keys.file("customer")).address
    return SubmitRequest(1, 1, 100, 0, 20, customer=address)


def script(command: str) -> str:
    return f"#!/bin/bash -l\n{command}\n"


def sbatch(customer: Customer, command: str) -> int:
    """Submit a job of the customer's account without a claim. Returns its Slurm id."""
    grid = customer.grid
    environment = {**os.environ, **grid.slurm.environment("beta")}
    argv = ["sbatch", "--parsable", f"--uid={account(customer)}", "--chdir=/", "--output=/dev/null", "--mem=100"]
    done = subprocess.run(
        [*argv, f"--wrap={command}"], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return int(done.stdout)


def enter(customer: Customer, slurm_id: int, key: JobKey) -> None:
    """Write into the supervisor's ledger that this Slurm job belongs to the claim."""
    folder = Path(customer.grid.slurm.login("beta").grid_root)
    with (folder / "ledger").open("a") as ledger:
        ledger.write(f"{slurm_id} {key.folder} {getpwnam(account(customer)).pw_uid}\n")


def account(customer: Customer) -> str:
    """Return the Unix account of the customer's jobs on beta."""
    return customer.grid.slurm.login("beta").account_of(Wallet.load(customer.grid.keys.file("customer")).address)
