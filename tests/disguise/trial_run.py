"""Runs the jobs of a disguised site through the supervisor, on a real chain, and compares what came out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deepgrid.billing.reconcile import NEVER_SETTLED_GRACE_S, reconcile
from deepgrid.billing.rules.kinds import Kind
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import Job, JobDefinition, JobKey, Prices
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.claims.customer_requests import next_cancel_request, next_top_up, wake_carrier
from deepgrid.provider.doctor import examine_cluster
from deepgrid.provider.provider_books import ProviderBooks
from deepgrid.provider.session import Intervals, ProviderSession, follow_jobs
from deepgrid.workflow import Definition
from deployments.onemachine.slurm import PARTITION
from tests.chain.grid import CREDIT, Grid
from tests.disguise.disguised_site import Disguised
from tests.disguise.disguises import Disguise
from tests.disguise.trials import PER_MINUTE, Trial, trials_for
from tests.provider.scene import Scene, scene_with
from tests.waiting import until

WITHIN_S = 400.0
PRICES = Prices(gpu_wei_per_minute=0, cpu_wei_per_minute=PER_MINUTE, mem_wei_per_mb_minute=0)
PARTITION_IS = ("scontrol", "update", f"partitionname={PARTITION}")
AGAIN_S = 1.0  # after a transient error
INTERVALS = Intervals(observe_again_s=10, look_at_node_s=0)
# What the one-machine site lacks in every disguise, and guards, as all its jobs share one account.
OF_THE_MACHINE = frozenset(
    {"containers", "S3", "private files", "networks", "accounts", "shells", "disk", "connections"}
)


@dataclass(eq=False)
class TrialRun:
    """One job in progress. `story` is what its carrier tells."""

    trial: Trial
    scene: Scene
    site: Disguised
    key: JobKey
    story: list[str] = field(default_factory=list)

    @property
    def _session(self) -> ProviderSession:
        return self.scene.session

    async def job(self) -> Job:
        return await self._session.chain.job(self.key.job_id)

    async def runs(self) -> None:
        """Wait until the chain shows the job as running and its script has begun."""

        async def begun() -> bool:
            job = await self.job()
            assert job.status.claimed, f"it is {job.status.words} already"
            return job.status is JobStatus.RUNNING and self._session.monitor.observe(self.key).began

        await until(begun, WITHIN_S, 0.5)

    async def is_queued(self) -> None:
        """Wait until Slurm says why the job waits."""

        async def waits() -> bool:
            job = await self.job()
            assert job.status.claimed, f"it is {job.status.words} already"
            seen = self._session.monitor.observe(self.key)
            return seen.phase is Phase.QUEUED and seen.placed

        await until(waits, WITHIN_S, 0.2)

    async def is_over(self) -> None:
        async def over() -> bool:
            return not (await self.job()).status.claimed

        await until(over, WITHIN_S, 0.5)

    async def administer(self, *argv: str, check: bool = True) -> str:
        """Run a command of Slurm as the site's administrator. `JOB` stands for its number."""
        job = str(self.site.box.ids(self.key)[0]) if any("JOB" in word for word in argv) else ""
        words = [word.replace("JOB", job) for word in argv]
        return await asyncio.to_thread(self.site.box.slurm, *words, check=check)

    async def node(self) -> str:
        return (await self.administer("squeue", "-h", "-j", "JOB", "-o", "%N")).strip()

    async def whole(self) -> None:
        """Carry the claim, and meanwhile do to the job what is done to it."""
        await asyncio.gather(self.carry(), self.act())

    async def act(self) -> None:
        """Do to the job what is done to it. What fails is a part of the story."""
        try:
            if self.trial.act is not None:
                await self.trial.act(self)
        except (AssertionError, TimeoutError, GridError) as error:
            self.story.append(f"FAILED to act: {error!r}")

    async def carry(self) -> None:
        """Drive the claim to its end, as a supervisor does: after a transient error it observes again."""
        async with carry(self._session, self.key, tell=self.story.append) as carrier:
            while True:
                try:
                    await drive(carrier.observe, carrier.act)
                    await carrier.finish()
                    return
                except GridError as error:
                    self.story.append(f"error: {error.message}")
                    if not error.transient:
                        raise
                await asyncio.sleep(AGAIN_S)

    async def faults(self) -> list[str]:
        """Return what differs from what the rules of bills say."""
        job, end = await self.job(), self.trial.end
        fee = job.fee_minutes if end.status is JobStatus.CANCELLED else 0  # the least that a run costs then
        costs = [max(minutes, minutes and fee) * job.rate_wei_per_minute for minutes in end.minutes]
        checks = {
            f"is {job.status.words}, not {end.status.words}": job.status is end.status,
            f"cost {job.final_cost_wei / CREDIT:g} credits, not {[cost / CREDIT for cost in costs]}": (
                job.final_cost_wei in costs
            ),
            f"has exit status {job.exit_status}, not {end.exit_status}": end.exit_status in (None, job.exit_status),
            f"says {job.last_error!r}, not {end.error!r}": end.error in job.last_error,
        }
        story = "; ".join(self.story)
        name = self.trial.name
        wrong = [fault for fault, right in checks.items() if not right]
        wrong += [line for line in self.story if line.startswith("FAILED")]
        return [f"the job that {name} {fault}: {story}" for fault in wrong]


async def try_out(how: Disguise, site: Disguised, grid: Grid, folder: Path) -> list[str]:
    """Run all jobs on the site, and let doctor look at it. Returns everything that is wrong."""
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(scene_with(grid, site.login, folder, grid.new_key("customer")))
        scene.session.intervals = INTERVALS
        for root in scene.session.settings.storage.roots:
            Path(root).mkdir(parents=True, exist_ok=True)
            Path(root).chmod(0o1777)
        scene.session.settings = replace(scene.session.settings, prices=PRICES)
        await scene.operator.mint(scene.customer.address, 10**6 * CREDIT)
        found = list(_judge_findings(how, await examine_cluster(scene.session.settings)))
        await scene.approve()
        runs = await _run_all(scene, site, trials_for(how))
        for run in runs:
            found += await run.faults()
        left = site.box.slurm("squeue", "-h", "-a", "-t", "pending,running,suspended", "-o", "%j %T")
        found += [f"Slurm still has {line}" for line in left.splitlines()]
        if how.has_accounting:
            found += await _judge_books(how, scene)
    return found


def _judge_findings(how: Disguise, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what doctor misses, and what it complains of without a cause."""
    wrong = {one.subject: one.complaint for one in findings if one.level is not Level.GOOD}
    named = {subject for subject in wrong.keys() - OF_THE_MACHINE if not subject.startswith("guard ")}
    yield from (f"doctor says nothing about {subject}" for subject in sorted(how.faults - named))
    yield from (f"doctor complains of {subject}: {wrong[subject]}" for subject in sorted(named - how.faults))


async def _run_all(scene: Scene, site: Disguised, trials: Sequence[Trial]) -> list[TrialRun]:
    """Request and carry all jobs. Those that wait find the partition closed, until the others of them are cancelled."""
    definitions: dict[str, Definition] = {}

    async def fetch(job_id: int, definition_hash: str) -> Definition:  # the services are not there
        return definitions[definition_hash]

    scene.session.services.fetch_definition = fetch  # type: ignore[method-assign]
    runs: list[TrialRun] = []
    with suppress(TimeoutError):  # jobs that are not over are faults
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
            helpers = [group.create_task(_follow(scene.session)), group.create_task(_take_requests(scene.session))]
            runs += [await _claimed(scene, site, one, definitions) for one in trials if not one.waits]
            tasks = [group.create_task(run.whole()) for run in runs]
            await asyncio.gather(*(_has_begun(run) for run in runs))
            waiting = [await _claimed(scene, site, one, definitions) for one in trials if one.waits]
            runs += waiting
            await waiting[0].administer(*PARTITION_IS, "state=down")
            late = {run: group.create_task(run.whole()) for run in waiting}
            await asyncio.gather(*(task for run, task in late.items() if run.trial.act))
            await waiting[0].administer(*PARTITION_IS, "state=up")
            await asyncio.gather(*tasks, *late.values())
            for helper in helpers:
                helper.cancel()
    return runs


async def _has_begun(run: TrialRun) -> None:
    """Wait until the job runs or is over."""

    async def begun() -> bool:
        return (await run.job()).status is not JobStatus.SCHEDULED

    await until(begun, WITHIN_S, 0.5)


async def _claimed(scene: Scene, site: Disguised, trial: Trial, definitions: dict[str, Definition]) -> TrialRun:
    """Request a job, and let the provider claim it."""
    asked = JobDefinition(
        gpus=0, mem_per_cpu_mb=trial.mem_mb, cpus_per_task=trial.cpus, ntasks=trial.ntasks,
        definition_hash=f"{len(definitions):064x}",
    )  # fmt: skip
    resources = {"tasks": asked.ntasks, "cpusPerTask": asked.cpus_per_task, "memPerCpu": asked.mem_per_cpu_mb}
    steps = [{"run": {"command": step, "resources": {"tasks": trial.ntasks}}} for step in trial.steps]
    definitions[asked.definition_hash] = Definition.model_validate(
        {"enableLogging": False, "resources": {**resources, "gpus": 0}, "steps": steps}
    )
    locked = trial.minutes * trial.ntasks * trial.cpus * PER_MINUTE
    job_id = await scene.customer.request_job(asked, locked, trial.name[:32], approve_first=locked)
    await scene.operator.meta_schedule(job_id, scene.session.address)
    (job,) = await scene.session.claim_waiting()
    return TrialRun(trial, scene, site, scene.session.key_of(job))


async def _follow(session: ProviderSession) -> None:
    """Wake carriers at changes on chain."""
    async for _ in follow_jobs(session):
        pass


async def _take_requests(session: ProviderSession) -> None:
    """Take cancel requests and top-ups off the queues on chain, as the flows of these names do."""
    while True:
        for take in (next_cancel_request, next_top_up):
            if (job := await take(session)) is not None:
                wake_carrier(session, job)
        await asyncio.sleep(1)


async def _judge_books(how: Disguise, scene: Scene) -> list[str]:
    """Return what the provider's own books find, once accounting has all ends."""
    books = ProviderBooks(scene.session)
    # Chain and Slurm cannot agree on when a job ran where their clocks differ.
    allowed = {Kind.RAN_EARLY, Kind.RAN_TWICE, Kind.RAN_ON, Kind.STILL_RUNNING} if how.clock_s else set()
    found: list[str] = []
    for _ in range(20):
        span = await books.period(None, None)
        ledger = await books.read_chain(span)
        runs = await books.read_slurm(span, ledger)
        ledger = await books.with_jobs(ledger, runs)
        result = reconcile(
            books.name, ledger, span, runs=runs, provider=books.provider, tolerance_minutes=1,
            never_settled_grace_s=NEVER_SETTLED_GRACE_S,
        )  # fmt: skip
        found = [f"books: {one}" for one in result.differences if one.kind not in allowed]
        if not found:
            return []
        await asyncio.sleep(1)
    return found
