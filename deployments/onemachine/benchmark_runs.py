"""Measures the one-machine grid's clusters at its first start, as their own schedules do later.

It runs the deployments, and waits for the operator's approval. So `./run up` shows what a real grid does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from deepgrid.errors import NotFound, ServiceError
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.grid import LocalGrid

FINAL = frozenset({"COMPLETED", "FAILED", "CRASHED", "CANCELLED"})


@dataclass(frozen=True)
class MeasuringTimeouts:
    """Timeouts for the measurement of a cluster and then for its approval, and the polling interval."""

    measured_within_s: float = 180.0
    approved_within_s: float = 60.0
    poll_s: float = 0.5


DEFAULT_TIMEOUTS = MeasuringTimeouts()


def measure(grid: LocalGrid, tell: Callable[[str], None]) -> None:
    """Measure each cluster without approved measured labels, one after the other. Print a line for each.

    A failed measurement is reported and otherwise harmless: the next one brings the labels.
    """
    for name in grid.keys.providers:
        if not _labels(grid, name):
            began = time.monotonic()
            said = _measure(grid, name)
            tell(f"  measured {name} ({time.monotonic() - began:.1f} s): {said}")


def _measure(grid: LocalGrid, name: str) -> str:
    try:
        state = run_to_end(grid.prefect, f"benchmark_cluster/{name}")
    except ServiceError as error:
        return str(error)
    if state["type"] != "COMPLETED":
        return f"{state['type'].lower()}: {state['message']}"
    deadline = time.monotonic() + DEFAULT_TIMEOUTS.approved_within_s
    while not _labels(grid, name):
        if time.monotonic() > deadline:
            return "its labels wait for the operator's approval"
        time.sleep(DEFAULT_TIMEOUTS.poll_s)
    return _most_telling(grid, name)


def run_to_end(
    prefect: PrefectServer, deployment: str, timeouts: MeasuringTimeouts = DEFAULT_TIMEOUTS
) -> dict[str, str]:
    """Run the deployment `flow/name` once. Returns type and message of the run's final state.

    Raises ServiceError when Prefect does not know it, or the run does not end in time.
    """
    found = prefect.ask("GET", f"/api/deployments/name/{deployment}")
    wanted = {"state": {"type": "SCHEDULED"}}
    run = found and prefect.ask("POST", f"/api/deployments/{found['id']}/create_flow_run", wanted)
    if not run:
        raise ServiceError(f"Prefect does not run {deployment}.", next_step="See ./run status.")
    deadline = time.monotonic() + timeouts.measured_within_s
    while time.monotonic() < deadline:
        seen = prefect.ask("GET", f"/api/flow_runs/{run['id']}")
        if seen and seen["state"]["type"] in FINAL:
            return {"type": seen["state"]["type"], "message": seen["state"]["message"] or ""}
        time.sleep(timeouts.poll_s)
    raise ServiceError(f"The run of {deployment} continues; its labels come later.")


def _most_telling(grid: LocalGrid, name: str) -> str:
    """Return the main labels, on one line."""
    labels = _labels(grid, name)
    shown = [f"{key} {labels[key]}" for key in ("compute.gflops", "cpu.microarch") if key in labels]
    return f"{len(labels)} labels, {', '.join(shown)}" if shown else f"{len(labels)} labels"


def _labels(grid: LocalGrid, name: str) -> dict[str, str]:
    """Return the approved measured labels of the cluster."""
    from deepgrid.benchmark.labels import measured_of  # slow to import, and `status` does without
    from deepgrid.chain.book import AddressBook
    from deepgrid.chain.client import Chain
    from deepgrid.chain.transactions.wallet import Wallet

    async def read() -> dict[str, str]:
        async with await Chain.connect(AddressBook.load(grid.book)) as chain:
            try:
                provider = await chain.provider(Wallet.load(grid.keys.file(name)).address)
            except NotFound:
                return {}
        return {label.key: label.value for label in measured_of(provider.labels)} if provider.approved else {}

    return asyncio.run(read())
