"""Keeps a carrier for every claim of a provider: its own run or, while Prefect is down, a fallback in this process.

Claims without a run's carrier are found without a request. Only if there are some, one request asks Prefect for all of
them, and `orchestration.runs.carrier_table` says what happens to their runs. When Prefect does not answer, a fallback
carries each claim with the same steps until the claim's run takes over. If a fallback settled the claim, the run
completes later, even after a restart of the supervisor.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, StateType

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.shared.claim_journal import ClaimJournal
from orchestration.outages import asking, warn
from orchestration.pools import provider_pool
from orchestration.runs import carrier_table
from orchestration.runs.carrier_table import Claim, Step, Wait, decide, state_of
from orchestration.runs.deleted_places import has_no_pool
from orchestration.runs.filters import runs_with
from orchestration.runs.flow_runs import some_at_once, worker_of
from orchestration.runs.orphaned_runs import PAGE, RESUMED, runs_in
from tasks.job_runs import claim_of, run_key, schedule_again, start_job_runs

SCHEDULED_AT_ONCE = 16
INCOMPLETE = (StateType.PENDING, StateType.RUNNING, StateType.CRASHED, StateType.FAILED, StateType.CANCELLED)
NO_PROCESS = "No process carried the job."
JOB_IS_OVER = "The job is over."

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CarrierSettings:
    """Intervals and timeouts of the watchdog and its fallbacks."""

    poll_s: float = 2.0
    ask_after_s: float = 5.0  # a claim without a run's carrier for this long leads to a request to Prefect
    start_grace_s: float = 20.0  # a new claim's run is created and starts within this time, even among many
    silence_s: float = 10.0  # without an answer for this long, Prefect counts as down
    turn_s: float = 120.0  # before a claim is carried without its run, which a paused or limited pool does not start
    ended_run_retry_s: float = 300.0  # before a run that ended before its job is scheduled again
    compare_every_s: float = 300.0  # between comparisons of all runs with the chain
    error_retry_s: float = 300.0  # after an error of a step that is not transient
    longest_pause_s: float = 30.0  # between retries of transient errors


class CarrierWatchdog:
    """Watches the claims among the provider's `hot` jobs. The caller keeps `hot` up to date."""

    def __init__(
        self,
        session: ProviderSession,
        hot: Mapping[int, Job],
        group: asyncio.TaskGroup,
        settings: CarrierSettings = CarrierSettings(),
    ) -> None:
        self._session = session
        self._hot = hot
        self._group = group
        self._settings = settings
        self._pool = provider_pool(session.settings.cluster)
        self._alone_since: dict[JobKey, float] = {}  # open claims that no run carries
        # Claims carried while Prefect was down. Their runs are updated when Prefect is back.
        file = session.settings.state / f"{session.settings.cluster}.untold.json"
        self._journal = ClaimJournal(file, like=session.key(0, 0))
        self._silent_since: float | None = None
        self._uncompared = ConditionLog(logger, "cannot compare runs with the chain")
        self._ask_after = self._compared_at = -math.inf

    async def watch(self) -> None:
        """Check all claims forever. Fallbacks carry the claims of the previous process at once."""
        self._note_alone(-math.inf)
        self._start_fallbacks("until its run starts", self._alone(time.monotonic()))
        while True:
            if self._session.leader.leads:  # otherwise another supervisor may carry these claims by now
                await self._check(time.monotonic())
            await asyncio.sleep(self._settings.poll_s)

    async def _check(self, now: float) -> None:
        self._note_alone(now)
        compare = now - self._compared_at >= self._settings.compare_every_s and self._has_taken_over()
        if not (compare or self._over() or self._alone(now)):
            self._silent_since = None
            return
        if self._silent_since is None and now < self._ask_after:
            return
        try:
            async with asking() as client:
                await self._correct_runs(client, now)
                if compare:
                    await self._complete_stale_runs(client)
        except GridError as error:
            self._uncompared.note(error)
        except Exception as error:  # Prefect's client raises many types
            self._note_silence(now, error)
            if time.monotonic() - (self._silent_since or now) >= self._settings.silence_s:
                self._start_fallbacks("until Prefect answers", self._alone(time.monotonic()))
            return
        else:
            self._uncompared.end()
        self._silent_since, self._ask_after = None, now + self._settings.ask_after_s
        self._compared_at = now if compare else self._compared_at

    def _claims(self) -> set[JobKey]:
        return {self._session.key_of(job) for job in self._hot.values() if job.status.claimed}

    def _note_alone(self, now: float) -> None:
        """Note since when claims lack a run's carrier, fallbacks aside. Claims that a run carries need no journal."""
        claims = self._claims()
        alone = {key for key in claims if self._session.may_carry(key)}
        self._alone_since = {key: self._alone_since.get(key, now) for key in alone}
        self._journal.discard(claims - alone)

    def _over(self) -> list[JobKey]:
        """Finished claims of fallbacks. Their runs do not show the end yet."""
        claims = self._claims()
        return [key for key in self._journal if key not in claims and not self._session.carries(key)]

    def _alone(self, now: float) -> list[JobKey]:
        """Return claims that have lacked a run's carrier for longer than a run needs to start."""
        return [key for key, since in self._alone_since.items() if now - since >= self._settings.ask_after_s]

    def _has_taken_over(self) -> bool:
        """Return whether the worker has continued the runs of the former process.

        They need not be scheduled again then.
        """
        worker = worker_of(self._pool)
        return worker is None or worker.has_taken_over()

    async def _correct_runs(self, client: PrefectClient, now: float) -> None:
        over, alone = self._over(), self._alone(now)
        runs = await runs_of(client, self._session, [*over, *alone])
        if not self._has_taken_over():
            return
        await self._apply(Claim.OVER, {key: runs.get(key) for key in over}, JOB_IS_OVER, now)
        self._journal.discard(over)
        await self._apply(Claim.OPEN, {key: runs.get(key) for key in alone}, NO_PROCESS, now)

    async def _complete_stale_runs(self, client: PrefectClient) -> None:
        """Schedule runs again that did not complete although their claim is over. Other grids' runs are left alone."""
        runs = await runs_in(client, self._pool, *INCOMPLETE, flows=RESUMED)
        claims = {key: run for run in runs if (key := self._claim_of(run)) and not self._is_carried(run)}
        jobs = await self._session.chain.jobs([key.job_id for key in claims]) if claims else []
        is_over = [job.status.cold or self._session.key_of(job) != key for key, job in zip(claims, jobs, strict=True)]
        stale = {key: run for (key, run), over in zip(claims.items(), is_over, strict=True) if over}
        await self._apply(Claim.OVER, stale, JOB_IS_OVER, time.monotonic())

    async def _apply(self, claim: Claim, runs: Mapping[JobKey, FlowRun | None], why: str, now: float) -> None:
        """Do what the table says with the runs of these claims: create missing ones in bulk, schedule some at once."""
        steps: dict[JobKey, Step] = {}
        for key, run in runs.items():
            step, wait = decide(claim, state_of(run), self._carrier(key, run))
            if now - self._alone_since.get(key, -math.inf) >= self._wait_s(wait):
                steps[key] = step
        self._start_fallbacks("until its run starts", [key for key, step in steps.items() if step is Step.CARRY])
        self._begin_without_pool(run for run in runs.values() if run is not None)
        if missing := [key for key, step in steps.items() if step is Step.CREATE]:
            logger.info("creating the runs of %d jobs, which have none", len(missing))
            await start_job_runs(self._session, missing)
        again = {key: run for key, run in runs.items() if run and steps.get(key) is Step.SCHEDULE}
        for key, run in again.items():
            state = run.state_name or "without a state"
            logger.info("job %d: its run is %s, scheduling it again: %s", key.job_id, state, why)
        await some_at_once((schedule_again(self._session, run, why) for run in again.values()), SCHEDULED_AT_ONCE)

    def _begin_without_pool(self, runs: Iterable[FlowRun]) -> None:
        """Begin the scheduled runs that no poll returns."""
        if (worker := worker_of(self._pool)) is not None:
            for run in filter(has_no_pool, runs):
                worker.begin(run)

    def _carrier(self, key: JobKey, run: FlowRun | None) -> carrier_table.Carrier:
        if run is not None and self._is_carried(run):
            return carrier_table.Carrier.RUN
        return carrier_table.Carrier.FALLBACK if self._session.carries(key) else carrier_table.Carrier.NONE

    def _is_carried(self, run: FlowRun) -> bool:
        worker = worker_of(self._pool)
        return worker is not None and worker.carries(run.id)

    def _claim_of(self, run: FlowRun) -> JobKey | None:
        key = claim_of(run, self._session.chain.book)
        return key if key is not None and run.idempotency_key == run_key(key, self._session.address) else None

    def _wait_s(self, wait: Wait) -> float:
        settings = self._settings
        times = {Wait.START: settings.start_grace_s, Wait.RETRY: settings.ended_run_retry_s, Wait.TURN: settings.turn_s}
        return times.get(wait, 0.0)

    def _note_silence(self, now: float, error: Exception) -> None:
        if self._silent_since is None:
            self._silent_since = now
            warn(logger, "cannot ask Prefect for the runs of jobs, trying again", error)

    def _start_fallbacks(self, until: str, keys: Sequence[JobKey]) -> None:
        """Start a fallback for each of these claims without any carrier."""
        wanted = [key for key in keys if not self._session.carries(key)]
        self._journal.add(wanted)
        for key in wanted:
            logger.warning("job %d is carried without a run %s", key.job_id, until)
            self._group.create_task(self._carry(key), name=f"fallback of job {key.job_id}")

    async def _carry(self, key: JobKey) -> None:
        """Carry a claim to its end. After an error, observe and decide again, as the retries of a run do."""
        if self._session.carries(key):
            return
        pause_s, failing = 1.0, ConditionLog(logger, f"job {key.job_id}: a step failed")
        async with carry(self._session, key, fallback=asyncio.current_task()) as carrier:
            while True:
                try:
                    await drive(carrier.observe, carrier.act)
                    await carrier.finish()
                    return
                except GridError as error:
                    failing.note(error)
                    retry_s = self._settings.error_retry_s
                    pause_s = min(2 * pause_s, self._settings.longest_pause_s) if error.transient else retry_s
                except Exception:  # a bug in one job must not end all carriers
                    logger.exception("job %d: a step failed, trying again: unexpected error", key.job_id)
                    pause_s = self._settings.error_retry_s
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))


async def runs_of(client: PrefectClient, session: ProviderSession, keys: Sequence[JobKey]) -> dict[JobKey, FlowRun]:
    """Return the existing runs of these claims. One request reads up to PAGE runs."""
    claims = {run_key(key, session.address): key for key in keys}
    wanted = list(claims)
    found: list[FlowRun] = []
    for at in range(0, len(wanted), PAGE):
        page = runs_with(keys=wanted[at : at + PAGE])
        found += await client.read_flow_runs(flow_run_filter=page, limit=PAGE)
    return {claims[run.idempotency_key]: run for run in found if run.idempotency_key}
