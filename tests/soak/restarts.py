"""Restarts each process of a grid by SIGTERM, one after another, as an upgrade does."""

from __future__ import annotations

import signal
import time

from deployments.onemachine.clusters import OFFERS
from deployments.onemachine.grid import LocalGrid

# Names of processes, with the step of `up` that starts them. Clients come before the processes that they need.
STEPS = {
    **{f"supervisor-{offer.name}": f"supervisor-{offer.name}" for offer in OFFERS},
    "operator": "operator",
    "worker-processes": "worker-processes",
    "web": "web-app",
    "services": "services",
    "proxy": "proxy",
    "prefect-server": "prefect",
}
ENDS_WITHIN_S = 10.0
ROOM = 1.8  # for a busy machine; a process table waits 20 s for an end


def rolling_restart(grid: LocalGrid) -> dict[str, float]:
    """Restart the processes, each when the previous one serves. Returns the seconds that each took to end."""
    took = {}
    for name, step in STEPS.items():
        began = time.monotonic()
        grid.table.stop(name, signal.SIGTERM)
        took[name] = round(time.monotonic() - began, 1)
        assert not grid.table.alive(name), f"{name} ignores SIGTERM"
        grid.table.stop(name)
        grid.start(step)
    return took
