"""The operator's books of a simulated day: read and reconciled hour by hour, while the day continues."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from deepgrid.billing.entries import Runs, Span
from deepgrid.billing.reconcile import Reconciliation, reconcile
from deepgrid.chain.client import Chain
from deepgrid.chain.ledger import read_ledger
from tests.bench.simulated_day.day_chain import DayClock
from tests.bench.simulated_day.day_providers import DayProviders

HOUR_S, ATTEMPTS = 3600, 3


@dataclass
class DayBooks:
    """The books so far. `reconciled` are the jobs that were settled in a period whose books were compared."""

    chain: Chain
    clock: DayClock
    providers: DayProviders
    reconciled: int = 0
    differences: list[str] = field(default_factory=list)
    _since: int = 0

    async def serve(self) -> None:
        """Reconcile each hour after its end, until cancelled."""
        self._since = self.clock.began
        while True:
            await self.clock.next_block()
            if self.clock.now - self._since > HOUR_S:
                await self.reconcile_until(self._since + HOUR_S)

    async def reconcile_until(self, until: int) -> None:
        """Reconcile the period from the end of the last one until this time."""
        for _ in range(ATTEMPTS):
            result, ended = await self._compared(Span(self._since, until))
            if result.clean or result.differences:
                break
            await self.clock.next_block()  # a node that mines may answer from the block before for a moment
        if not result.clean:
            self.differences.append(result.message)
        self.providers.runs = [run for run in self.providers.runs if run.job_id not in ended]
        self.reconciled += len(ended)
        self._since = until

    async def _compared(self, span: Span) -> tuple[Reconciliation, set[int]]:
        """Return the books of a period, the jobs that were settled in it."""
        ledger = await read_ledger(self.chain, span, await self._hot())
        ended = {one.job_id for one in ledger.settlements if ledger.in_period(one.block)}
        runs = tuple(run for run in self.providers.runs if run.job_id in ended)
        signed = Runs(runs, complete=False, source="simulated clusters", partial=True)
        return await asyncio.to_thread(reconcile, "day", ledger, span, runs=signed), ended

    async def _hot(self) -> set[int]:
        """Return the jobs that are not known to be settled."""
        return set(range(1, await self.chain.job_count() + 1)) - self.providers.ended
