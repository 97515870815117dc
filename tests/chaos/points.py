"""Named points at which the supervisor can be killed. They are wrapped around the real code from outside.

A place is `before NAME` or `after NAME` of a point, or one of the `BETWEEN`. A small file names the place that kills,
so that a running supervisor can be armed; see `Kills`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from deepgrid.lifecycle.states import JobStatus

# The name of a point, and the module and attribute of the async function behind it.
POINTS = {
    "claim": ("deepgrid.chain.writer", "Writer.claim_next_jobs"),
    "start of the run": ("flows.claim_jobs", "start_job_runs"),
    "fetch": ("deepgrid.provider.claims.carrier", "Carrier.fetch_script"),
    "sbatch": ("deepgrid.slurm.cluster", "Cluster.submit"),
    "RUNNING report": ("deepgrid.provider.claims.carrier", "Carrier.report_running"),
    "extension": ("deepgrid.slurm.cluster", "Cluster.set_time_limit"),
    "cancel at Slurm": ("deepgrid.slurm.cluster", "Cluster.cancel"),
    "settlement": ("deepgrid.provider.claims.carrier", "Carrier.settle"),
    "acknowledge": ("deepgrid.slurm.cluster", "Cluster.acknowledge"),
    "look at a cancel request": ("deepgrid.chain.writer", "Writer.claim_next_cancelling"),
    "look at a top-up": ("deepgrid.chain.writer", "Writer.claim_next_top_up"),
    "taking over": ("orchestration.runs.orphaned_runs", "_without_limit"),
    "tidying": ("orchestration.worker", "tidy"),
}
# In the middle of an effect. On the login node, sbatch is about to run, or the supervisor has not read its answer. Or
# the node has a transaction, and the supervisor does not know that it is mined.
BETWEEN = ("intent of sbatch", "answer of sbatch", "claim sent", "RUNNING report sent", "settlement sent")
PLACES = tuple(f"{when} {name}" for name in POINTS for when in ("before", "after")) + BETWEEN

LOOK_S = 0.002


class Kills:
    """Kills this process at the n-th arrival at the place that `file` names: {"place", "nth", "token"}."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._token = ""
        self._arrivals = 0

    def arrive(self, place: str) -> None:
        """Note that the wrapped code has reached `place`."""
        try:
            wanted = json.loads(self._file.read_text())
        except FileNotFoundError:
            return
        if wanted["place"] != place:
            return
        if wanted["token"] != self._token:
            self._token, self._arrivals = wanted["token"], 0
        self._arrivals += 1
        if self._arrivals >= wanted["nth"]:
            print(f"killed {place}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def wants(self, *places: str) -> bool:
        """Return whether a process must die at one of these places. Some are too costly to watch without need."""
        try:
            return json.loads(self._file.read_text())["place"] in places
        except FileNotFoundError:
            return False


def wrap_all(kills: Kills) -> None:
    """Report every arrival to `kills`. Raises AttributeError when the code has moved."""
    for name, (module, path) in POINTS.items():
        owner: Any = import_module(module)
        *parents, attribute = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, attribute, _around(getattr(owner, attribute), name, kills))
    _watch_sbatch(kills)
    _watch_sending(kills)


def _around(original: Callable[..., Awaitable[Any]], name: str, kills: Kills) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        kills.arrive(f"before {name}")
        result = await original(*args, **kwargs)
        kills.arrive(f"after {name}")
        return result

    return wrapped


def _watch_sbatch(kills: Kills) -> None:
    """Watch the protocol's files, which show its progress: the login node is this machine."""
    from deepgrid.slurm.cluster import Cluster
    from deepgrid.slurm.submit.protocol import job_folder

    original = Cluster.submit

    async def watch(folder: Path) -> None:
        for file, place in (("intent", "intent of sbatch"), ("id", "answer of sbatch")):
            while not (folder / file).exists():
                await asyncio.sleep(LOOK_S)
            kills.arrive(place)

    @functools.wraps(original)
    async def submit(self: Cluster, key: Any, *args: Any) -> Any:
        if not kills.wants("intent of sbatch", "answer of sbatch"):
            return await original(self, key, *args)
        watching = asyncio.create_task(watch(Path(job_folder(self.settings, key))))
        try:
            return await original(self, key, *args)
        finally:
            watching.cancel()

    Cluster.submit = submit  # type: ignore[method-assign]


def _watch_sending(kills: Kills) -> None:
    from deepgrid.chain.transactions.in_flight import InFlight

    original = InFlight._broadcast

    @functools.wraps(original)
    async def broadcast(self: InFlight, outgoing: Any) -> Any:
        answer = await original(self, outgoing)
        if answer is None and (what := _sent(outgoing.call)):
            kills.arrive(f"{what} sent")
        return answer

    InFlight._broadcast = broadcast  # type: ignore[method-assign]


def _sent(call: Any) -> str:
    """Return the report that a transaction makes to the chain; empty for other calls."""
    if call.title == "claimNextJobs":
        return "claim"
    if call.title == "providerSetJobStatuses":  # of an end, with the RUNNING report
        return "settlement"
    if call.title != "providerSetJobStatus":
        return ""
    status = int(call.data[2 + 8 + 64 : 2 + 8 + 128], 16)  # the second argument
    return "RUNNING report" if status == JobStatus.RUNNING else "settlement"
