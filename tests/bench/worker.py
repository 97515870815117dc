"""`./run bench worker`: compares job-shaped flow runs per second of the in-process worker and Prefect's process worker.

Both poll the same private Prefect server on PostgreSQL every second. The time counts from the creation of the first
run to the final state of the last one. Prefect's worker gets fewer runs, because it needs seconds per run.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rich.console import Console
from rich.table import Table

from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.processes import Daemon, ProcessTable

if TYPE_CHECKING:  # Prefect reads its settings on import, so it is imported after the server has started
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import StateType

RUNS = {"deepgrid": 120, "process": 10}
ENTRYPOINT = "tests.bench.job_shaped.job_shaped"
TIME_LIMIT_S = 300
REPOSITORY = Path(__file__).parents[2]


def free_ports(count: int) -> list[int]:
    """Return loopback ports that are free at this moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def prefect_server(folder: Path) -> Iterator[ProcessTable]:
    """Yield a private Prefect server on PostgreSQL. The environment of this process points to it."""
    postgres_port, prefect_port = free_ports(2)
    postgres, server = Postgres(folder / "postgres", postgres_port), PrefectServer(folder / "prefect", prefect_port)
    table = ProcessTable(folder)
    try:
        postgres.prepare()
        table.start(postgres.daemon())
        table.wait_ready(postgres.daemon())
        postgres.create_database("prefect")
        daemon = server.daemon(postgres.url("prefect"))
        table.start(daemon)
        table.wait_ready(daemon)
        os.environ.update(server.environment(), PREFECT_WORKER_QUERY_SECONDS="1", PREFECT_LOGGING_LEVEL="WARNING")
        yield table
    finally:
        for name in reversed(table.names()):
            table.stop(name)


async def measure(pool_type: str, start_worker: Callable[[str], Awaitable[Callable[[], Awaitable[None]]]]) -> float:
    """Return the runs per second that a worker of `pool_type` completes."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.workers.base import BaseWorker

    from tests.bench.job_shaped import job_shaped

    worker_class = BaseWorker.get_worker_class_from_type(pool_type)
    assert worker_class is not None
    async with get_client() as client:
        template = worker_class.get_default_base_job_template()
        await client.create_work_pool(WorkPoolCreate(name=pool_type, type=pool_type, base_job_template=template))
        flow_id = await client.create_flow(job_shaped)
        deployment = await client.create_deployment(
            flow_id, name=pool_type, work_pool_name=pool_type, entrypoint=ENTRYPOINT,
            job_variables={"working_dir": str(REPOSITORY)} if pool_type == "process" else {},
        )  # fmt: skip
        stop = await start_worker(pool_type)
        try:
            started = time.monotonic()
            for number in range(RUNS[pool_type]):
                await client.create_flow_run_from_deployment(deployment, parameters={"number": number})
            await _all_completed(client, deployment, RUNS[pool_type])
            return RUNS[pool_type] / (time.monotonic() - started)
        finally:
            await stop()


async def _all_completed(client: PrefectClient, deployment: UUID, runs: int) -> None:
    """Return whether all runs completed. Queries only counts: reading whole runs would distort the measurement."""
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId, FlowRunFilter
    from prefect.client.schemas.objects import StateType

    async def count(*states: StateType) -> int:
        return await client.count_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate({"state": {"type": {"any_": states}}}),
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        )

    deadline = time.monotonic() + TIME_LIMIT_S
    while await count(StateType.COMPLETED) < runs:
        assert await count(StateType.FAILED, StateType.CRASHED) == 0, "a run did not complete"
        assert time.monotonic() < deadline, f"the runs did not end in {TIME_LIMIT_S} s"
        await asyncio.sleep(0.25)


async def in_process(pool: str) -> Callable[[], Awaitable[None]]:
    """Serve the pool in a thread of this process, as the supervisor does."""
    from orchestration.worker import InProcessWorker

    loop = asyncio.new_event_loop()
    task: list[asyncio.Task[None]] = []

    async def serve() -> None:
        task.append(asyncio.ensure_future(InProcessWorker(pool).start(printer=lambda *_: online.set())))
        await asyncio.gather(task[0], return_exceptions=True)

    online = threading.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    await asyncio.to_thread(online.wait)

    async def stop() -> None:
        loop.call_soon_threadsafe(task[0].cancel)
        await asyncio.to_thread(thread.join)

    return stop


def stock(table: ProcessTable) -> Callable[[str], Awaitable[Callable[[], Awaitable[None]]]]:
    """Prefect's own process worker in a separate process."""

    async def start(pool: str) -> Callable[[], Awaitable[None]]:
        argv = [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool, "--type", "process"]
        log = table.log_path("stock-worker")
        ready: Callable[[], bool] = lambda: log.exists() and "started!" in log.read_text()  # noqa: E731
        daemon = Daemon("stock-worker", argv, ready=ready, env={"PREFECT_LOGGING_LEVEL": "INFO"})
        table.start(daemon)
        await asyncio.to_thread(table.wait_ready, daemon)

        async def stop() -> None:
            await asyncio.to_thread(table.stop, "stock-worker")

        return stop

    return start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, prefect_server(Path(folder)) as table:
        ours = asyncio.run(measure("deepgrid", in_process))
        theirs = asyncio.run(measure("process", stock(table)))
    grid = Table("worker", "flow runs", "runs/s", "ratio", title="Flow runs of six empty tasks")
    grid.add_row("in-process (deepgrid)", str(RUNS["deepgrid"]), f"{ours:.2f}", f"{ours / theirs:.1f}")
    grid.add_row("process (stock)", str(RUNS["process"]), f"{theirs:.2f}", "1.0")
    Console(width=100).print(grid)
    figures = {"bench": "worker", "ratio": round(ours / theirs, 2), "runs_per_s": round(ours, 2)}
    print(json.dumps({**figures, "stock_runs_per_s": round(theirs, 3)}))


if __name__ == "__main__":
    main()
