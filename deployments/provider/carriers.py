"""Sees that every claim of a provider is carried: by its own run or, while Prefect is silent, by this process.

Claims that no run carries are found without asking anybody. Only while there are such is Prefect asked, with one
request for all of them: their runs are made or come again. When it does not answer, a stand-in carries each claim
with the same steps, until the claim's run takes over from it; what a stand-in has ended, the claim's run completes,
also when that is after a restart.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Mapping

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun

from deepgrid.errors import GridError
from deepgrid.lifecycle.drive import drive
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.carrier import Carrier, carry
from deepgrid.provider.session import ProviderSession
from deployments.provider.adoption import adopt, put_right, runs_of
from deployments.provider.carried_jobs import CarriedJobs
from runtime.outages import asking, warn

LOOK_S = 2.0
ASK_AFTER_S = 5.0  # a claim that is alone for that long, and again
GRACE_S = 20.0  # in which a new claim's run is made and begins, also when many are claimed at once
SILENT_S = 10.0  # after which Prefect counts as away
AGAIN_S = 300.0  # after which a run that ended before its job comes again; all runs are compared as often
LONGEST_PAUSE_S = 30.0

logger = logging.getLogger(__name__)


class Carrying:
    """Looks after the claims among the provider's `hot` jobs, which somebody else keeps up to date."""

    def __init__(self, session: ProviderSession, hot: Mapping[int, Job], group: asyncio.TaskGroup) -> None:
        self._session = session
        self._hot = hot
        self._group = group
        self._alone_since: dict[JobKey, float] = {}  # claims that no run carries
        settings = session.settings
        self._untold = CarriedJobs(settings.state / f"{settings.cluster}.untold.json", like=session.key(0, 0))
        self._silent_since: float | None = None
        self._ask_after = self._compared_at = -math.inf

    async def look_after(self) -> None:
        """Look every 2 s, for ever. What the last process left is carried at once, until its runs take over."""
        self._note_alone(-math.inf)
        self._stand_in("until its run comes")
        while True:
            if self._session.leader.leads:  # else another supervisor may carry by now, and this one's are carried
                await self._look(time.monotonic())
            await asyncio.sleep(LOOK_S)

    async def _look(self, now: float) -> None:
        self._note_alone(now)
        compare = now - self._compared_at >= AGAIN_S
        if not (compare or self._over() or self._alone(now)):
            self._silent_since = None
            return
        if self._silent_since is None and now < self._ask_after:
            return
        try:
            async with asking() as client:
                await self._adopt(client, now)
                if compare:
                    await put_right(client, self._session)
        except GridError as error:
            logger.warning("runs cannot be compared with the chain now: %s", error)
        except Exception as error:  # whatever Prefect's client raises
            self._note_silence(now, error)
            if time.monotonic() - (self._silent_since or now) >= SILENT_S:
                self._stand_in("until Prefect answers")
            return
        self._silent_since, self._ask_after = None, now + ASK_AFTER_S
        self._compared_at = now if compare else self._compared_at

    def _claims(self) -> set[JobKey]:
        return {self._session.key_of(job) for job in self._hot.values() if job.status.claimed}

    def _note_alone(self, now: float) -> None:
        """Note since when claims are without a run's carrier, stand-ins or not; what a run carries it tells itself."""
        claims = self._claims()
        alone = {key for key in claims if self._session.may_carry(key)}
        self._alone_since = {key: self._alone_since.get(key, now) for key in alone}
        self._untold.discard(claims - alone)

    def _over(self) -> list[JobKey]:
        """Claims that were carried by stand-ins and are over, which their runs do not know yet."""
        claims = self._claims()
        return [key for key in self._untold if key not in claims and not self._session.carries(key)]

    def _alone(self, now: float) -> list[JobKey]:
        """Claims that are without a run's carrier for longer than it takes to begin."""
        return [key for key, since in self._alone_since.items() if now - since >= ASK_AFTER_S]

    async def _adopt(self, client: PrefectClient, now: float) -> None:
        over, alone = self._over(), self._alone(now)
        runs = await runs_of(client, self._session, [*over, *alone])
        for key in over:
            run = runs.get(key)
            if run is None or run.state is None or not run.state.is_completed():
                await adopt(self._session, key, run, "The job ended while it was carried without a run.")
        self._untold.discard(over)
        for key in alone:
            if self._session.carries(key) or now - self._alone_since[key] >= _patience(runs.get(key)):
                await adopt(self._session, key, runs.get(key), "Nobody carried the job.")

    def _note_silence(self, now: float, error: Exception) -> None:
        if self._silent_since is None:
            self._silent_since = now
            warn(logger, "Prefect cannot be asked for the runs of jobs", error)

    def _stand_in(self, until: str) -> None:
        """Carry what is not carried."""
        wanted = [key for key in self._alone(time.monotonic()) if not self._session.carries(key)]
        self._untold.add(wanted)
        for key in wanted:
            logger.warning("job %d is carried without a run %s", key.job_id, until)
            self._group.create_task(self._carry(key), name=f"stand-in of job {key.job_id}")

    async def _carry(self, key: JobKey) -> None:
        if self._session.carries(key):
            return
        async with carry(self._session, key, stand_in=asyncio.current_task()) as carrier:
            await _to_the_end(carrier)


def _patience(run: FlowRun | None) -> float:
    """For how many seconds a claim may be alone; longer when a person or an error ended its run."""
    if run is None or run.state is None or run.state.is_crashed():
        return GRACE_S
    return AGAIN_S if run.state.is_final() or run.state.is_cancelling() else GRACE_S


async def _to_the_end(carrier: Carrier) -> None:
    """Carry a claim to its end; what fails is tried again from the truth, as a run's tasks and adoption do it."""
    pause_s = 1.0
    while True:
        try:
            await drive(carrier.observe, carrier.act)
            await carrier.finish()
            return
        except GridError as error:
            logger.warning("job %d: %s", carrier.job_id, error)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S) if error.transient else AGAIN_S
        except Exception:  # one job's fault must not end everybody's carriers
            logger.exception("job %d: a step failed in a way that nobody thought of", carrier.job_id)
            pause_s = AGAIN_S
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
