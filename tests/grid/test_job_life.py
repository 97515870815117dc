"""The life of a job on the whole grid: states, exit statuses, bills, and nothing left in Slurm."""

from __future__ import annotations

import asyncio
import time

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import FINAL, api, run_until, tasks_of, told_of
from tests.grid.support import HEAD, cold, in_slurm, steps

# The lines of a failed job's run, in the order of the alphabet: a short job may end before it is reported as running.
STORY = (
    "Finished in state Completed('The job", "claimed at", "definition fetched", "ended as FAILED with exit status 7",
    "reported as running", "settled as failed: minutes=1", "started at", "submitted as Slurm job",
)  # fmt: skip

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


async def test_a_job_runs_and_its_provider_is_paid(customer: Customer) -> None:
    done = customer.dps(
        "submit", "examples/hello-world.yaml", "--credits", "100", "--job-name", "hello", "--watch",
        "--exit-on-job-exit", check=0,
    )  # fmt: skip
    for word in ("META-SCHEDULED", "SCHEDULED", "RUNNING", "FINISHED", "Hello world", "alpha", "refund", "0x"):
        assert word in done.stdout
    job_id = int(done.stdout.split("job ")[1].split()[0])
    job = await customer.job(job_id)
    assert (job.status, job.exit_status) == (JobStatus.FINISHED, 0)
    settled = await customer.settlement(job_id)
    assert settled.billed_minutes == 1
    assert settled.paid_wei == job.rate_wei_per_minute * 80 // 100


async def test_the_run_of_a_job_tells_its_story(customer: Customer) -> None:
    """A run had six lines "Finished in state Completed()", no table and no tag, and its diagram one arrow."""
    job_id = customer.submit(steps("exit 7"))
    job = await customer.until(job_id, cold)
    async with api(customer.grid) as client:
        wanted = {"flow_runs": {"name": {"like_": f"job {job_id} on "}}}
        [run] = (await client.post("flow_runs/filter", json=wanted)).raise_for_status().json()
    run = await run_until(customer.grid, run["id"], lambda run: run["state"]["type"] in FINAL)
    named = [f"{step} job {job_id} " for step in ("fetch script of", "submit", "report", "settle")]
    histories = await tasks_of(customer.grid, run["id"], *named)
    assert {states[-1] for _, states in histories} == {"Completed"}
    told = await told_of(customer.grid, run["id"], len(STORY))
    assert [told.parents[label] for label in told.labels] == [[], *([label] for label in told.labels[:-1])]
    assert [line[: len(beginning)] for line, beginning in zip(sorted(told.lines), STORY, strict=True)] == [*STORY]
    assert run["state"]["message"] == "The job is failed: exit status 7."
    cluster = run["name"].rpartition(" ")[2]
    assert set(run["tags"]) == {"failed", "exit:7", "fault:job", f"customer:{job.customer}", f"cluster:{cluster}"}
    settled = await customer.settlement(job_id)
    shown = {"exit status": "7", "status": "failed", "transaction": settled.tx_hash, "minutes": "1"}
    assert shown.items() <= told.card.items()
    assert {"Slurm job", "nodes", "account", "credits"} <= told.card.keys()


async def test_the_exit_status_is_shown_by_dps_and_on_chain(customer: Customer) -> None:
    done = customer.dps("submit", "examples/exit-code.yaml", "--credits", "100", "-w", "-e")
    assert done.returncode == 3, done.stdout + done.stderr
    job = await customer.job(int(done.stdout.split("job ")[1].split()[0]))
    assert (job.status, job.exit_status) == (JobStatus.FAILED, 768)
    assert "exit status 3" in customer.dps("job", "get", str(job.id), check=0).stdout
    await customer.settlement(job.id)


async def test_a_job_that_no_cluster_can_run_waits_and_says_why(customer: Customer) -> None:
    job_id = customer.submit(HEAD.replace("tasks: 1", "tasks: 100000") + "steps: [{run: {command: 'true'}}]\n")
    deadline = time.monotonic() + PATIENCE_S
    while "2 clusters lack 100000 CPUs" not in (shown := customer.dps("job", "get", str(job_id), check=0).stdout):
        assert time.monotonic() < deadline, shown
        await asyncio.sleep(0.5)
    assert (await customer.job(job_id)).status is JobStatus.PENDING
    customer.dps("job", "cancel", str(job_id), check=0)
    settled = await customer.settlement(job_id)
    assert settled.refunded_wei == (await customer.job(job_id)).locked_wei


@pytest.mark.deep
async def test_a_cancelled_job_leaves_slurm(customer: Customer) -> None:
    job_id = customer.submit(steps("sleep 600"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    assert "RUNNING" in in_slurm(customer, job_id)
    customer.dps("job", "cancel", str(job_id), check=0)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.CANCELLED
    deadline = time.monotonic() + PATIENCE_S
    while left := in_slurm(customer, job_id):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.5)
    await customer.settlement(job_id)


@pytest.mark.deep
async def test_a_killed_supervisor_loses_no_job_and_bills_no_extra_minute(customer: Customer) -> None:
    job_id = customer.submit(steps("sleep 20", "echo survived"))
    job = await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    supervisor = f"supervisor-{'alpha' if job.rate_wei_per_minute < 10**18 else 'beta'}"
    customer.grid.kill(supervisor)
    await asyncio.to_thread(customer.grid.start, supervisor)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.FINISHED
    settled = await customer.settlement(job_id)
    assert settled.billed_minutes == 1
    assert "survived" in customer.dps("job", "logs", str(job_id), "--follow", check=0).stdout


@pytest.mark.deep
async def test_a_job_that_uses_up_its_credits_ends_out_of_credits(customer: Customer) -> None:
    """It needs ten minutes and can pay for one."""
    workflow = steps("sleep 600").replace("gpus: 0", "gpus: 4").replace("tasks: 1", "tasks: 2")
    job = await customer.until(customer.submit(workflow), cold)
    assert job.status is JobStatus.OUT_OF_CREDITS
    settled = await customer.settlement(job.id)
    assert settled.billed_minutes == job.granted_minutes == 1
