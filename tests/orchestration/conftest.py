"""A real Prefect server, without a grid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_WORKER_QUERY_SECONDS,
    temporary_settings,
)

from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.processes import Daemon, ProcessTable
from orchestration.prefect_internals import drain_queues
from tests.orchestration.pool import client as client
from tests.orchestration.pool import worker as worker
from tests.slurm.support import open_folder


@pytest.fixture(scope="package")
def server() -> Iterator[PrefectServer]:
    """Prefect's server of this environment, on PostgreSQL: SQLite locks when many runs report at once."""
    with open_folder() as folder:
        ports, table = PortBook(folder / "ports.json"), ProcessTable(folder)
        postgres = Postgres(folder / "postgres", ports.port("postgres"))
        server = PrefectServer(folder / "prefect", ports.port("prefect"))
        try:
            postgres.prepare()
            _start(table, postgres.daemon())
            postgres.create_database("prefect")
            _start(table, server.daemon(postgres.url("prefect")))
            yield server
        finally:
            for name in reversed(table.names()):
                table.stop(name)


def _start(table: ProcessTable, daemon: Daemon) -> None:
    table.start(daemon)
    table.wait_ready(daemon)


@pytest.fixture
def prefect_api(server: PrefectServer) -> Iterator[None]:
    """Let flows of this process use the server. Their logs and events are delivered before it stops."""
    url, login = server.environment()["PREFECT_API_URL"], server.login()
    with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: login, PREFECT_WORKER_QUERY_SECONDS: 1}):
        yield
        drain_queues(timeout_s=30)
