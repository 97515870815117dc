"""The customer of the whole grid, at a terminal."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from deepgrid.billing.entries import Settlement
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.client.order import Order, read_order
from deepgrid.client.session import CustomerSettings, customer_session
from deepgrid.lifecycle.job import Job
from deployments.onemachine.grid import LocalGrid

PATIENCE_S = 600.0


LOCKED_WEI = 100 * 10**18


SCALED = "DEEPGRID_TEST_SCALED"


DPS = Path(sys.executable).with_name("dps")


@dataclass
class Customer:
    """The customer of the grid at a terminal, and the state of the customer's jobs on chain."""

    grid: LocalGrid
    home: Path

    def dps(self, *arguments: str, check: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run `dps`. With `check`, its exit status must equal `check`."""
        env = {**os.environ, "HOME": str(self.home), "DEEPGRID_BOOK": str(self.grid.book)}
        env["DPS_KEY_FILE"] = str(self.grid.keys.file("customer"))
        done = subprocess.run(
            [str(DPS), *arguments], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if check is not None:
            assert done.returncode == check, f"dps {arguments} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def submit(self, workflow: str, *uses: str, affinities: Sequence[str] = (), delegate_spending: bool = False) -> int:
        """Submit workflow text with 100 credits, like `dps submit` without a process. Returns the job's id."""
        file = self.home / f"workflow-{time.monotonic_ns()}.yaml"
        file.write_text(workflow)
        return self.place(
            read_order(file, LOCKED_WEI, uses=uses, affinities=affinities, delegate_spending=delegate_spending)
        )

    def place(self, order: Order) -> int:
        """Submit an order. Returns the job's id."""
        with ThreadPoolExecutor(1) as beside:  # asyncio.run needs a thread without an event loop
            return beside.submit(asyncio.run, self._place(order)).result(PATIENCE_S)

    async def _place(self, order: Order) -> int:
        async with customer_session(CustomerSettings(self.grid.keys.file("customer"), self.grid.book)) as session:
            await session.check(order)
            return await session.request(order, await session.store(order))

    async def job(self, job_id: int) -> Job:
        async with await Chain.connect(AddressBook.load(self.grid.book)) as chain:
            return await chain.job(job_id)

    async def settlement(self, job_id: int) -> Settlement:
        """Return the job's settlement. Checks that provider + cut + refund = locked, to the wei."""
        async with await Chain.connect(AddressBook.load(self.grid.book)) as chain:
            settled = await chain.settlement(job_id)
            job = await chain.job(job_id)
        assert settled is not None
        assert settled.paid_wei + settled.cut_wei + settled.refunded_wei == job.locked_wei
        assert settled.paid_wei + settled.cut_wei == job.final_cost_wei
        return settled

    async def until(self, job_id: int, reached: Callable[[Job], bool]) -> Job:
        """Wait until `reached` is true for the job."""
        deadline = time.monotonic() + PATIENCE_S
        async with await Chain.connect(AddressBook.load(self.grid.book)) as chain:
            while not reached(job := await chain.job(job_id)):
                assert time.monotonic() < deadline, f"still {job}"
                await asyncio.sleep(0.3)
        return job
