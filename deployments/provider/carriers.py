"""Keeps a carrier for every claim of a provider: its own run or, while Prefect is down, a stand-in in this process.

Claims without a run's carrier are found without a request. Only if there are some is Prefect asked, with one request
for all of them, and their runs are created or scheduled again. When Prefect does not answer, a stand-in carries each
claim with the same steps until the claim's run takes over. If a stand-in settled the claim, the run completes later,
even after a restart of the supervisor.

Adoption schedules the run of a claim again. It continues from what the chain and Slurm say, or completes and reports
how the job ended. Only the leader adopts: it overrides the states of runs.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterIdempotencyKey
from prefect.client.schemas.objects import FlowRun, StateType

from deepgrid.errors import GridError
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.claims.carrier import Carrier, carry
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.shared.claim_journal import ClaimJournal
from orchestration.outages import asking, warn
from orchestration.pools import provider_pool
from orchestration.runs.flow_runs import is_carried, some_at_once, worker_of
from orchestration.runs.orphaned_runs import PAGE, RESUMED, runs_in
from tasks.job_runs import claim_of, run_key, schedule_again, start_job_runs

ADOPTED_AT_ONCE = 16
OPEN_STATES = (StateType.PENDING, StateType.RUNNING, StateType.CRASHED, StateType.FAILED)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CarrierSettings:
    """Intervals and timeouts of the watchdog and its stand-ins."""

    poll_s: float = 2.0
    ask_after_s: float = 5.0  # a claim without a run's carrier for this long leads to a request to Prefect
    start_grace_s: float = 20.0  # a new claim's run is created and starts within this time, even among many
    silence_s: float = 10.0  # without an answer for this long, Prefect counts as down
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
        self._alone_since: dict[JobKey, float] = {}  # claims that no run carries
        state, cluster = session.settings.state, session.settings.cluster
        # Claims carried while Prefect was down. Their runs are updated when Prefect is back.
        self._journal = ClaimJournal(state / f"{cluster}.untold.json", like=session.key(0, 0))
        self._silent_since: float | None = None
        self._ask_after = self._compared_at = -math.inf

    async def watch(self) -> None:
        """Check all claims forever. Stand-ins carry the claims of the previous process at once."""
        self._note_alone(-math.inf)
        self._stand_in("until its run starts")
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
                await self._adopt(client, now)
                if compare:
                    await complete_stale_runs(client, self._session)
        except GridError as error:
            logger.warning("cannot compare runs with the chain, trying again: %s", error)
        except Exception as error:  # Prefect's client raises many types
            self._note_silence(now, error)
            if time.monotonic() - (self._silent_since or now) >= self._settings.silence_s:
                self._stand_in("until Prefect answers")
            return
        self._silent_since, self._ask_after = None, now + self._settings.ask_after_s
        self._compared_at = now if compare else self._compared_at

    def _claims(self) -> set[JobKey]:
        return {self._session.key_of(job) for job in self._hot.values() if job.status.claimed}

    def _note_alone(self, now: float) -> None:
        """Note since when claims lack a run's carrier, stand-ins aside. Claims that a run carries need no journal."""
        claims = self._claims()
        alone = {key for key in claims if self._session.may_carry(key)}
        self._alone_since = {key: self._alone_since.get(key, now) for key in alone}
        self._journal.discard(claims - alone)

    def _over(self) -> list[JobKey]:
        """Finished claims of stand-ins. Their runs do not show the end yet."""
        claims = self._claims()
        return [key for key in self._journal if key not in claims and not self._session.carries(key)]

    def _alone(self, now: float) -> list[JobKey]:
        """Claims that have lacked a run's carrier for longer than a run needs to start."""
        return [key for key, since in self._alone_since.items() if now - since >= self._settings.ask_after_s]

    async def _adopt(self, client: PrefectClient, now: float) -> None:
        over, alone = self._over(), self._alone(now)
        runs = await runs_of(client, self._session, [*over, *alone])
        if not self._has_taken_over():
            return
        incomplete = {key: runs.get(key) for key in over if not _is_completed(runs.get(key))}
        await adopt_all(self._session, incomplete, "The job ended while it was carried without a run.")
        self._journal.discard(over)
        overdue = {
            key: runs.get(key)
            for key in alone
            if self._session.carries(key) or now - self._alone_since[key] >= self._patience_s(runs.get(key))
        }
        await adopt_all(self._session, overdue, "No process carried the job.")

    def _has_taken_over(self) -> bool:
        """Whether the worker has continued the runs of the former process. They need not be scheduled again then."""
        worker = worker_of(provider_pool(self._session.settings.cluster))
        return worker is None or worker.has_taken_over()

    def _patience_s(self, run: FlowRun | None) -> float:
        """Seconds for which a claim may lack a carrier: longer when a person or an error ended its run."""
        if run is None or run.state is None or run.state.is_crashed():
            return self._settings.start_grace_s
        ended = run.state.is_final() or run.state.is_cancelling()
        return self._settings.ended_run_retry_s if ended else self._settings.start_grace_s

    def _note_silence(self, now: float, error: Exception) -> None:
        if self._silent_since is None:
            self._silent_since = now
            warn(logger, "cannot ask Prefect for the runs of jobs, trying again", error)

    def _stand_in(self, until: str) -> None:
        """Start a stand-in for each claim without any carrier."""
        wanted = [key for key in self._alone(time.monotonic()) if not self._session.carries(key)]
        self._journal.add(wanted)
        for key in wanted:
            logger.warning("job %d is carried without a run %s", key.job_id, until)
            self._group.create_task(self._carry(key), name=f"stand-in of job {key.job_id}")

    async def _carry(self, key: JobKey) -> None:
        if self._session.carries(key):
            return
        async with carry(self._session, key, stand_in=asyncio.current_task()) as carrier:
            await self._to_the_end(carrier)

    async def _to_the_end(self, carrier: Carrier) -> None:
        """Carry a claim to its end. After an error, observe and decide again, as the retries of a run do."""
        pause_s = 1.0
        while True:
            try:
                await drive(carrier.observe, carrier.act)
                await carrier.finish()
                return
            except GridError as error:
                logger.warning("job %d: a step failed, trying again: %s", carrier.key.job_id, error)
                retry_s = self._settings.error_retry_s
                pause_s = min(2 * pause_s, self._settings.longest_pause_s) if error.transient else retry_s
            except Exception:  # a bug in one job must not end all carriers
                logger.exception("job %d: a step failed, trying again: unexpected error", carrier.key.job_id)
                pause_s = self._settings.error_retry_s
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))


def _is_completed(run: FlowRun | None) -> bool:
    return run is not None and run.state is not None and run.state.is_completed()


async def runs_of(client: PrefectClient, session: ProviderSession, keys: Sequence[JobKey]) -> dict[JobKey, FlowRun]:
    """The existing runs of these claims. One request reads up to PAGE runs."""
    claims = {run_key(key, session.address): key for key in keys}
    wanted = list(claims)
    found: list[FlowRun] = []
    for at in range(0, len(wanted), PAGE):
        page = FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=wanted[at : at + PAGE]))
        found += await client.read_flow_runs(flow_run_filter=page, limit=PAGE)
    return {claims[run.idempotency_key]: run for run in found if run.idempotency_key}


async def adopt_all(session: ProviderSession, runs: Mapping[JobKey, FlowRun | None], why: str) -> None:
    """Create missing runs of these claims in bulk, and schedule the others again, some in parallel. See `adopt`."""
    if missing := [key for key, run in runs.items() if run is None]:
        logger.info("creating the runs of %d jobs, which have none", len(missing))
        await start_job_runs(session, missing)
    await some_at_once((adopt(session, key, run, why) for key, run in runs.items() if run is not None), ADOPTED_AT_ONCE)


async def adopt(session: ProviderSession, key: JobKey, run: FlowRun, why: str) -> None:
    """Schedule the claim's run again unless it is scheduled or carried already."""
    if is_coming(session, run):
        return
    logger.info("job %d: its run is %s, scheduling it again: %s", key.job_id, run.state_name or "without a state", why)
    await schedule_again(session, run, why)


def is_coming(session: ProviderSession, run: FlowRun) -> bool:
    """Whether the run is scheduled, or carried by this process's worker."""
    return (run.state is not None and run.state.is_scheduled()) or is_carried(
        run, provider_pool(session.settings.cluster)
    )


async def complete_stale_runs(client: PrefectClient, session: ProviderSession) -> None:
    """Schedule runs again that did not complete although their job is over on chain.

    Runs of other grids' jobs are left alone.
    """
    runs = await runs_in(client, provider_pool(session.settings.cluster), *OPEN_STATES, flows=RESUMED)
    claims = {key: run for run in runs if not is_coming(session, run) and (key := _claim_of(session, run))}
    if not claims:
        return
    jobs = await session.chain.jobs([key.job_id for key in claims])
    stale = [
        adopt(session, key, run, f"The job is {job.status.words}.")
        for (key, run), job in zip(claims.items(), jobs, strict=True)
        if job.status.cold or session.key_of(job) != key
    ]
    await some_at_once(stale, ADOPTED_AT_ONCE)


def _claim_of(session: ProviderSession, run: FlowRun) -> JobKey | None:
    key = claim_of(run, session.chain.book)
    return key if key is not None and run.idempotency_key == run_key(key, session.address) else None
