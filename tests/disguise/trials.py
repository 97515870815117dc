"""The jobs of a disguised site: their steps, what happens to them, and their right end and bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepgrid.lifecycle import ends
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT
from tests.disguise.disguised_site import CPUS
from tests.disguise.disguises import Disguise

if TYPE_CHECKING:
    from tests.disguise.trial_run import TrialRun

FINISHED, FAILED, CANCELLED = JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELLED
GIVEN_BACK = JobStatus.PENDING  # of a job that another cluster may take
PER_MINUTE = 100 * CREDIT  # and per CPU; less than a minute of one CPU cannot be bought
GREEDY = "exec python3 -c 'x = b\"1\" * 300_000_000; import time; time.sleep(12)'"
LONG = "sleep 900"
# Ends after a second that took more than 20 s, which only a suspension explains.
UNTIL_SUSPENDED = "while t=$(date +%s); sleep 1; [ $(($(date +%s) - t)) -lt 20 ]; do :; done"
Act = Callable[["TrialRun"], Coroutine[None, None, None]]


@dataclass(frozen=True)
class End:
    """What the chain must show at the end. `minutes` are those that are billed; `error` is a part of the message."""

    status: JobStatus
    minutes: Sequence[int] = (1,)
    exit_status: int | None = None
    error: str = ""


@dataclass(frozen=True)
class Trial:
    """A job: the commands of its steps, its resources, the minutes that are bought, and what is done to it.

    `waits`: it is requested when all others run, and then the partition is closed for a while.
    """

    name: str
    steps: Sequence[str]
    end: End
    act: Act | None = None
    ntasks: int = 1
    cpus: int = 1
    mem_mb: int = 50
    minutes: int = 5
    waits: bool = False


async def _cancel(run: TrialRun) -> None:
    await run.runs()
    await run.scene.customer.cancel_job(run.key.job_id)


async def _cancel_pending(run: TrialRun) -> None:
    await run.is_queued()
    await run.scene.customer.cancel_job(run.key.job_id)


async def _scancel(run: TrialRun) -> None:
    await run.runs()
    await run.administer("scancel", "JOB")


async def _scancel_pending(run: TrialRun) -> None:
    await run.is_queued()
    await run.administer("scancel", "JOB")


async def _fail_the_node(run: TrialRun) -> None:
    await run.runs()
    node = f"nodename={await run.node()}"
    await run.administer("scontrol", "update", node, "state=down", "reason=power")
    await run.is_over()
    await run.administer("scontrol", "update", node, "state=resume", check=False)  # it may be back already


async def _requeue(run: TrialRun) -> None:
    await run.runs()
    await run.administer("scontrol", "update", "jobid=JOB", "requeue=1")
    await run.administer("scontrol", "requeue", "JOB")


async def _suspend(run: TrialRun) -> None:
    await run.runs()
    await run.administer("scontrol", "suspend", "JOB")
    await asyncio.sleep(35)
    await run.administer("scontrol", "resume", "JOB")


async def _top_up(run: TrialRun) -> None:
    await run.runs()
    await run.scene.customer.top_up(run.key.job_id, 3 * PER_MINUTE, approve_first=3 * PER_MINUTE)


def trials_for(how: Disguise) -> list[Trial]:
    """Return the jobs of a site, and what each must cost there."""
    cancelled_by_site = End(FAILED, (0,), error=ends.CANCELLED_BY_SITE.error)
    cancelled_by_someone = End(FAILED, (1,), error=ends.CANCELLED_BY_ITSELF.error)  # only accounting names the account
    by_admin = cancelled_by_site if how.has_accounting else cancelled_by_someone
    greedy = End(FAILED) if how.ends_greedy_jobs else End(FINISHED)
    whole = 2 if how.nodes != "all usable" else 3  # nodes that can run jobs
    refused = End(GIVEN_BACK, (0,))
    node_fail = End(FAILED, (0,), error=ends.ENDS["NODE_FAIL"].error)
    by_itself = End(FAILED, error=ends.CANCELLED_BY_ITSELF.error)
    return [
        Trial("ends well", ["true"], End(FINISHED, exit_status=0)),
        Trial("ends well after three steps", ["echo one", "sleep 3", "echo three"], End(FINISHED, exit_status=0)),
        Trial("runs as four tasks", ["sleep 2; hostname"], End(FINISHED), ntasks=4),
        Trial("runs into its second minute", ["sleep 75"], End(FINISHED, (2,))),
        Trial("fails with status 3", ["exit 3"], End(FAILED, exit_status=3 << 8)),
        Trial("fails in its second step", ["true", "exit 7", "true"], End(FAILED, exit_status=7 << 8)),
        Trial("ends by a signal", ["kill -9 $$"], End(FAILED)),
        Trial("runs into its time limit", [LONG], End(JobStatus.OUT_OF_CREDITS), minutes=1),
        Trial("is topped up", ["sleep 75"], End(FINISHED, (2,)), _top_up, minutes=1),
        Trial("is cancelled by its customer", [LONG], End(CANCELLED, (1, 2)), _cancel),
        Trial("is cancelled by an administrator", [LONG], by_admin, _scancel),
        Trial("cancels itself", [f"scancel $SLURM_JOB_ID; {LONG}"], by_itself),
        Trial("takes too much memory", [GREEDY], greedy),
        Trial("loses its node", [LONG], node_fail, _fail_the_node, cpus=CPUS),
        Trial("is queued again", [LONG], End(FAILED, error=ends.REQUEUED.error), _requeue),
        Trial("is suspended for a while", [UNTIL_SUSPENDED], End(FINISHED), _suspend),
        Trial("is too large for a node", ["true"], refused, cpus=2 * CPUS),
        Trial("waits for long", ["true"], End(FINISHED), ntasks=whole, cpus=CPUS, waits=True),
        Trial("is cancelled while it waits", ["true"], End(CANCELLED, (0,)), _cancel_pending, waits=True),
        Trial("is cancelled by an administrator while it waits", ["true"], refused, _scancel_pending, waits=True),
    ]  # fmt: skip
