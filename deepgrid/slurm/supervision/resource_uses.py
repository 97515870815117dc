"""Reads what runs used and use, for customers. Nothing depends on it: where it is not known, it is left out."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from deepgrid.billing.resource_use import Measured
from deepgrid.errors import GridError
from deepgrid.slurm.cluster import DAY_S
from deepgrid.slurm.commands.query import Query
from deepgrid.slurm.commands.step_uses import Run, SacctUse, Sstat, Steps
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.submit.throttle import Batcher

DELAY_S = 0.5
BATCH_SIZE = 50

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Wanted:
    run: Run
    found: Measured | None = None


class ResourceUses:
    """What runs used, from `sacct` and `sstat` through `login`. Single requests at the same time share a command."""

    def __init__(self, login: Runner, timeout_s: float) -> None:
        self._login = login
        self._timeout_s = timeout_s  # of one command
        self._batches: Batcher[_Wanted] = Batcher(self._read, DELAY_S, BATCH_SIZE)

    async def of(self, run: Run) -> Measured | None:
        """Return what a run used; None while accounting does not have its end, and where it has nothing."""
        wanted = _Wanted(run)
        await self._batches.do(wanted)
        return wanted.found

    async def of_all(self, runs: Collection[Run]) -> dict[Run, Measured]:
        """Return what these runs used, of those whose end accounting has; no figures if accounting does not answer."""
        ids, starts = {slurm_id for slurm_id, _ in runs}, [start for _, start in runs if start]
        if not starts:
            return {}
        query = SacctUse(min(starts) - DAY_S, sorted(ids))
        try:
            done = await self._run(query)
        except GridError as error:
            logger.debug("resource use is not known: %s", error.message)
            return dict.fromkeys(runs, Measured())
        return query.parse(done.text) if done.exit_status == 0 else dict.fromkeys(runs, Measured())

    async def running(self, ids: Collection[int]) -> dict[int, Steps]:
        """Return what the running steps of these jobs have used so far, of those that Slurm answers for.

        Raises GridError when the login node does not answer.
        """
        query = Sstat(sorted(ids))
        done = await self._run(query)
        return query.parse(done.text)  # whatever the status: one job that just ended changes it

    async def _run(self, query: Query[object]) -> CommandResult:
        return await self._login.run(["timeout", "-k", "5", f"{self._timeout_s:.0f}", *query.argv()])

    async def _read(self, batch: Sequence[_Wanted]) -> None:
        found = await self.of_all({one.run for one in batch})
        for one in batch:
            one.found = found.get(one.run)
