"""The grid of `./run up --scaled`: its Prefect has API servers behind a proxy, background services, and Redis.

The first API server migrates the database and registers Prefect's block types. The others start when it is ready,
because two that do so at once fail on an empty database.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder, read_or_create
from deployments.onemachine.daemons.grid_files import render_template
from deployments.onemachine.daemons.prefect_server import READY_WITHIN_S, PrefectServer
from deployments.onemachine.daemons.probes import HOST, PROBE_TIMEOUT_S, answers
from deployments.onemachine.daemons.processes import Daemon, ProcessTable, nginx, worker_account
from deployments.onemachine.grid import LocalGrid

ONE_SERVER = LocalGrid.prefect_processes[0][0]
PROXY, SERVICES, REDIS = "prefect-proxy", "prefect-services", "redis"
API_SERVERS = ("prefect-api-1", "prefect-api-2")
PROCESSES = ((PROXY,), (*API_SERVERS, SERVICES), (REDIS,))
MESSAGES, TASKS = 0, 1  # databases of Redis: broker, cache and leases; tasks of the background services
SHARED = {
    "PREFECT_MESSAGING_BROKER": "prefect_redis.messaging",
    "PREFECT_MESSAGING_CACHE": "prefect_redis.messaging",
    "PREFECT_SERVER_EVENTS_CAUSAL_ORDERING": "prefect_redis.ordering",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect_redis.lease_storage",
    "PREFECT_SERVER_WORKER_CHANNEL_CLEANUP_QUEUE_STORAGE": "prefect_redis.cleanup_queue",
}
PREPARED = {"PREFECT_API_DATABASE_MIGRATE_ON_START": "false", "PREFECT_API_BLOCKS_REGISTER_ON_START": "false"}


class ScaledGrid(LocalGrid):
    """One grid with all its state in one folder. `<state>/scaled` exists until `down`, so that `./run` finds it."""

    prefect_processes: ClassVar[tuple[tuple[str, ...], ...]] = PROCESSES

    def _check_kind(self) -> None:
        if self.table.alive(ONE_SERVER):
            raise ConfigurationError("The grid is up with one Prefect server.", next_step="Stop it first: ./run down")
        self._kind.touch()

    def down(self) -> list[str]:
        """Stop all processes. Returns the names of the recorded ones."""
        names = super().down()
        self._kind.unlink(missing_ok=True)
        return names

    @cached_property
    def prefect(self) -> PrefectServers:
        return PrefectServers.at(self.state, self.ports.port)

    def _start_prefect(self) -> None:
        self.prefect.start(self.table, self.postgres.url("prefect"))

    @property
    def _kind(self) -> Path:
        return self.state / "scaled"


@dataclass(frozen=True)
class PrefectServers(PrefectServer):
    """The servers behind the proxy at `port`. Clients use it like one server."""

    redis: Redis
    api_ports: dict[str, int]

    @classmethod
    def at(cls, state: Path, port: Callable[[str], int]) -> PrefectServers:
        """Return the servers with their files under `state`. `port` chooses a port by name."""
        api_ports = {name: port(name) for name in API_SERVERS}
        return cls(state / "prefect", port(PROXY), Redis(state / "redis", port(REDIS)), api_ports)

    def start(self, table: ProcessTable, database_url: str) -> None:
        """Start the processes that do not run. Returns when all serve."""
        first, *others = API_SERVERS
        for daemons in (
            [self.redis.daemon()],
            [self.api_server(first, database_url)],
            [*(self.api_server(name, database_url, PREPARED) for name in others), self.services(database_url)],
            [self.proxy()],
        ):
            table.serve(*daemons)

    def proxy(self) -> Daemon:
        """nginx at one address. It leaves out servers that do not answer, and is ready when one answers through it."""
        folder = make_private_folder(self.home / "proxy")
        values = {"host": HOST, "port": self.port, "servers": self.api_ports.values(), "account": worker_account()}
        render_template("prefect_proxy.conf", folder / "nginx.conf", 0o600, folder=folder, **values)
        return nginx(PROXY, folder / "nginx.conf", lambda: answers(self.port, "/api/health"))

    def api_server(self, name: str, database_url: str, more: dict[str, str] | None = None) -> Daemon:
        """Return a process that answers requests and has no background services."""
        port = self.api_ports[name]
        argv = [sys.executable, "-m", "prefect", "server", "start", "--no-services", "--host", HOST]
        argv += ["--port", str(port)]
        env = self.server_environment(database_url) | (more or {})
        return Daemon(name, argv, lambda: answers(port, "/api/health"), READY_WITHIN_S, env)

    def services(self, database_url: str) -> Daemon:
        """Return the process of the background services: schedules, late runs, events, task runs, vacuum."""
        argv = [sys.executable, "-m", "prefect", "server", "services", "start"]
        return Daemon(SERVICES, argv, env=self.server_environment(database_url) | PREPARED)

    def server_environment(self, database_url: str) -> dict[str, str]:
        """Return the environment of one server, with Redis instead of memory and files."""
        shared = {
            **SHARED,
            "PREFECT_LOGGING_LEVEL": "WARNING",  # prefect-redis logs each event that arrives out of order
            "PREFECT_REDIS_MESSAGING_URL": self.redis.url(MESSAGES),
            "PREFECT_SERVER_DOCKET_URL": self.redis.url(TASKS),
        }
        return super().server_environment(database_url) | shared


@dataclass(frozen=True)
class Redis:
    """A private server with its data in `folder`: loopback only, one password, in its settings file of mode 0600."""

    folder: Path
    port: int

    def daemon(self) -> Daemon:
        """Return the server's process. It is ready when it answers with its data loaded."""
        settings = make_private_folder(self.folder) / "redis.conf"
        values = {"host": HOST, "port": self.port, "folder": self.folder, "password": self._password}
        render_template("redis.conf", settings, 0o600, **values)
        return Daemon(REDIS, ["redis-server", str(settings)], self._is_ready)

    def url(self, database: int) -> str:
        """Return the URL of one of its databases. It contains the password: never log it."""
        return f"redis://:{self._password}@{HOST}:{self.port}/{database}"

    def _is_ready(self) -> bool:
        import redis  # slow, and commands such as `./run status` do not need it
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        timeouts = {"socket_timeout": PROBE_TIMEOUT_S, "socket_connect_timeout": PROBE_TIMEOUT_S}
        try:
            with redis.Redis.from_url(self.url(MESSAGES), retry=Retry(NoBackoff(), 0), **timeouts) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    @property
    def _password(self) -> str:
        make_private_folder(self.folder)
        return read_or_create(self.folder / "password", lambda: secrets.token_hex(16))
