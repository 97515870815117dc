"""The customers of a simulated day. Each has its own key and requests a sweep in one transaction."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from deepgrid.chain.batches import Request
from deepgrid.chain.transactions.in_flight import SenderSettings
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from tests.bench.simulated_day.day_chain import BLOCK_S, DayClock
from tests.bench.simulated_day.day_plan import DayPlan, Sweep
from tests.bench.simulated_market import SimulatedMarket

RARE_LOOKS = SenderSettings(poll_s=BLOCK_S, watch_s=30.0, settled_s=1.0)
"""Thousands of simulated keys ask the node less often than one real party does."""


@dataclass
class DayCustomers:
    """All customers, and what they asked for."""

    market: SimulatedMarket
    plan: DayPlan
    clock: DayClock
    asked: dict[str, float] = field(default_factory=dict)
    """CPU minutes that each customer asked for."""
    requested: int = 0

    async def open(self) -> None:
        """Create the customers' keys and give them credits."""
        grid, chain = self.market.grid, self.market.chain
        self._writers = [
            Writer(chain, Sender(chain, grid.new_key(f"customer-{number}"), RARE_LOOKS))
            for number in range(self.plan.customers)
        ]
        each = (self.plan.jobs + self.plan.customers * self.plan.sweep) * self.plan.locked_wei
        await asyncio.gather(*(self.market.operator.mint(writer.address, each) for writer in self._writers))
        await asyncio.gather(*(writer.approve(each) for writer in self._writers))

    async def offer(self) -> None:
        """Request all sweeps of the day, each at its time."""
        async with asyncio.TaskGroup() as group:
            for sweep in self.plan.sweeps():
                while self.clock.elapsed_s < sweep.at_s:
                    await self.clock.next_block()
                group.create_task(self._request(sweep))

    async def _request(self, sweep: Sweep) -> None:
        writer = self._writers[sweep.customer]
        job = Request(sweep.definition, self.plan.locked_wei, str(sweep.run_minutes))  # clusters read it in the name
        ids = await writer.request_jobs([job] * sweep.jobs)
        work = sweep.definition.cpus_per_task * sweep.run_minutes * sweep.jobs
        self.asked[writer.address] = self.asked.get(writer.address, 0.0) + work
        self.requested += len(ids)

    async def close(self) -> None:
        """Stop all senders."""
        await asyncio.gather(*(writer.sender.close() for writer in self._writers))
