"""Prefect as several processes: API servers behind a proxy, background services of their own, and Redis.

The first API server migrates the database and registers Prefect's block types. The others start when it is ready,
because two that do so at once fail on an empty database.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deployments.onemachine.daemons.prefect_server import READY_WITHIN_S, PrefectServer
from deployments.onemachine.daemons.probes import HOST, answers
from deployments.onemachine.daemons.processes import Daemon, ProcessTable
from deployments.scaled import proxy, redis_server
from deployments.scaled.proxy import Proxy
from deployments.scaled.redis_server import Redis

API_SERVERS = ("prefect-api-1", "prefect-api-2")
SERVICES = "prefect-services"
PROCESSES = ((proxy.NAME,), (*API_SERVERS, SERVICES), (redis_server.NAME,))
MESSAGES, TASKS = 0, 1  # databases of Redis: broker, cache and leases; tasks of the background services
SHARED = {
    "PREFECT_MESSAGING_BROKER": "prefect_redis.messaging",
    "PREFECT_MESSAGING_CACHE": "prefect_redis.messaging",
    "PREFECT_SERVER_EVENTS_CAUSAL_ORDERING": "prefect_redis.ordering",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect_redis.lease_storage",
    "PREFECT_SERVER_WORKER_CHANNEL_CLEANUP_QUEUE_STORAGE": "prefect_redis.cleanup_queue",
}
PREPARED = {"PREFECT_API_DATABASE_MIGRATE_ON_START": "false", "PREFECT_API_BLOCKS_REGISTER_ON_START": "false"}


@dataclass(frozen=True)
class PrefectServers(PrefectServer):
    """The servers behind the proxy at `port`. Clients use it like one server."""

    redis: Redis
    api_ports: dict[str, int]

    @classmethod
    def at(cls, state: Path, port: Callable[[str], int]) -> PrefectServers:
        """The servers with their files under `state`. `port` chooses a port by name."""
        api_ports = {name: port(name) for name in API_SERVERS}
        return cls(state / "prefect", port(proxy.NAME), Redis(state / "redis", port(redis_server.NAME)), api_ports)

    def start(self, table: ProcessTable, database_url: str) -> None:
        """Start the processes that do not run. Returns when all serve."""
        first, *others = API_SERVERS
        for daemons in (
            [self.redis.daemon()],
            [self.api_server(first, database_url)],
            [*(self.api_server(name, database_url, PREPARED) for name in others), self.services(database_url)],
            [Proxy(self.home / "proxy", self.port, self.api_ports).daemon()],
        ):
            for daemon in daemons:
                table.start(daemon)
            for daemon in daemons:
                table.wait_ready(daemon)

    def api_server(self, name: str, database_url: str, more: dict[str, str] | None = None) -> Daemon:
        """A process that answers requests and has no background services."""
        port = self.api_ports[name]
        argv = [sys.executable, "-m", "prefect", "server", "start", "--no-services", "--host", HOST]
        argv += ["--port", str(port)]
        env = self.server_environment(database_url) | (more or {})
        return Daemon(name, argv, lambda: answers(port, "/api/health"), READY_WITHIN_S, env)

    def services(self, database_url: str) -> Daemon:
        """The process of the background services: schedules, late runs, events, task runs, vacuum."""
        argv = [sys.executable, "-m", "prefect", "server", "services", "start"]
        return Daemon(SERVICES, argv, env=self.server_environment(database_url) | PREPARED)

    def server_environment(self, database_url: str) -> dict[str, str]:
        """As of one server, and Redis instead of memory and files."""
        shared = {
            **SHARED,
            "PREFECT_LOGGING_LEVEL": "WARNING",  # prefect-redis logs each event that arrives out of order
            "PREFECT_REDIS_MESSAGING_URL": self.redis.url(MESSAGES),
            "PREFECT_SERVER_DOCKET_URL": self.redis.url(TASKS),
        }
        return super().server_environment(database_url) | shared
