"""Faults of the table in the provider's guide: how a test causes one, and what Prefect shows of it.

A run that fails is started during the fault. After the repair, its Retry button is pressed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from deepgrid.chain.transactions.wallet import Wallet
from deployments.onemachine.grid import LocalGrid
from tests.grid.block_changes import changed_block
from tests.grid.customer import PATIENCE_S
from tests.grid.runs import FINAL, Json, api, run_until

CLUSTER = "alpha"


@dataclass(frozen=True)
class Fault:
    """A fault that lets a run of the deployment fail. `row` is the first cell of its row, `says` is in the message."""

    row: str
    during: Callable[[LocalGrid], AbstractAsyncContextManager[None]]
    flow: str
    says: str
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def deployment(self) -> str:
        return f"{self.flow}/{CLUSTER}"


async def pressed_retry(grid: LocalGrid, run: Json) -> Json:
    """Press Retry, as Prefect's UI does, and wait for the end of the next attempt."""
    async with api(grid) as client:
        wanted = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retry from the Prefect UI"}}
        answer = (await client.post(f"flow_runs/{run['id']}/set_state", json=wanted)).raise_for_status().json()
    assert answer["status"] == "ACCEPT", answer
    return await run_until(
        grid, run["id"], lambda now: now["state"]["type"] in FINAL and now["run_count"] > run["run_count"]
    )


@asynccontextmanager
async def stopped(grid: LocalGrid, process: str, step: str) -> AsyncIterator[None]:
    """Stop a process, and start it afterwards with all that its step of `up` starts."""
    await asyncio.to_thread(grid.table.stop, process)
    try:
        yield
    finally:
        await asyncio.to_thread(grid.start, step)


@asynccontextmanager
async def without_login(grid: LocalGrid) -> AsyncIterator[None]:
    """Stop sshd with its open sessions."""
    await asyncio.to_thread(grid.slurm.stop_login, grid.table, CLUSTER)
    try:
        yield
    finally:
        await asyncio.to_thread(grid.start, "slurm")


@asynccontextmanager
async def drained_nodes(grid: LocalGrid) -> AsyncIterator[None]:
    """Drain all nodes of the cluster."""
    await asyncio.to_thread(_set_nodes, grid, "state=drain", "reason=maintenance")
    try:
        yield
    finally:
        await asyncio.to_thread(_set_nodes, grid, "state=resume")


def _set_nodes(grid: LocalGrid, *change: str) -> None:
    environment = {**os.environ, **grid.slurm.environment(CLUSTER)}
    command = ["scontrol", "update", "nodename=ALL", *change]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)


@asynccontextmanager
async def out_of_gas(grid: LocalGrid) -> AsyncIterator[None]:
    """Take the gas money of the provider's wallet."""
    address = Wallet.load(grid.keys.file(CLUSTER)).address
    node = grid.anvil.private()
    try:
        before = str((await node.batch([("eth_getBalance", [address, "latest"])]))[0])
        await node.batch([("anvil_setBalance", [address, "0x1"])])
        try:
            yield
        finally:
            await node.batch([("anvil_setBalance", [address, before])])
    finally:
        await node.close()


WRONG_BLOCK = Fault(
    row="a wrong value in a block",
    during=partial(changed_block, block="deepgrid-provider/alpha", name="cpu_wei_per_minute", value="a lot"),
    flow="register_provider",
    says="The block deepgrid-provider/alpha does not fit this release: cpu_wei_per_minute: ",
)
OUT_OF_GAS = Fault(row="no gas money", during=out_of_gas, flow="claim_jobs", says=" cannot pay for gas.")
NO_LOGIN = Fault(
    row="sshd stopped", during=without_login, flow="claim_jobs", says="SlurmUnreachable: The login node 127.0.0.1:"
)
NO_CONTROLLER = Fault(
    row="slurmctld stopped",
    during=partial(stopped, process="alpha-slurmctld", step="slurm"),
    flow="claim_jobs",
    says="Slurm does not answer: ",
)
NO_CHAIN = Fault(
    row="the chain's node is down",
    during=partial(stopped, process="node-filter", step="chain"),
    flow="claim_jobs",
    says="The chain's node at 127.0.0.1:",
)
NO_PROGRAM = Fault(
    row="a benchmark program is missing",
    during=partial(changed_block, block="deepgrid-benchmarks/alpha", name="python", value="/no/such/python"),
    flow="benchmark_cluster",
    says="network failed (",
    parameters={"programs": ["network"]},
)
