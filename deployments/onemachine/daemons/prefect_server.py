"""The grid's Prefect server, with its UI, on the grid's PostgreSQL.

A client of its API can run any command as the grid's account. So the API requires a login, from a file of mode 0600.
Processes get the login in their environment, which other accounts cannot read.
"""

from __future__ import annotations

import secrets
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deepgrid.files.private_files import make_private_folder, read_or_create
from deployments.onemachine.daemons.probes import HOST, answers, ask_json
from deployments.onemachine.daemons.processes import Daemon
from deployments.prefect_settings import QUIET, SERVER

USER = "deepgrid"
READY_WITHIN_S = 180.0  # the first start also runs the migrations


@dataclass(frozen=True)
class PrefectServer:
    """The server at `port`. `home` has its settings and its clients' settings; the database has its data."""

    home: Path
    port: int

    def daemon(self, database_url: str) -> Daemon:
        """Return the server's process. It is ready when its API answers; the first start also runs the migrations."""
        argv = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(self.port)]
        env = self.server_environment(database_url)
        return Daemon("prefect-server", argv, lambda: answers(self.port, "/api/health"), READY_WITHIN_S, env)

    def server_environment(self, database_url: str) -> dict[str, str]:
        """Return the environment of a process of the server. It contains passwords: never log it."""
        make_private_folder(self.home)
        return {
            **SERVER,
            "PREFECT_HOME": str(self.home),
            "PREFECT_API_DATABASE_CONNECTION_URL": database_url,
            "PREFECT_SERVER_API_AUTH_STRING": self.login(),
            "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        }

    def environment(self) -> dict[str, str]:
        """Return the environment of every client of this server. It contains the login: never log it."""
        return {
            **QUIET,
            "PREFECT_HOME": str(self.home),
            "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "false",  # the server has none: spares each client a request
            "PREFECT_API_URL": f"{self.ui_url}/api",
            "PREFECT_API_AUTH_STRING": self.login(),
        }

    def login(self) -> str:
        """`user:password`, created at the first call."""
        make_private_folder(self.home)
        return read_or_create(self.login_file, lambda: f"{USER}:{secrets.token_urlsafe(24)}")

    @property
    def login_file(self) -> Path:
        """File of the login: one line, mode 0600."""
        return self.home / "login"

    def ask(self, method: str, path: str, question: Mapping[str, object] | None = None) -> Any:
        """Return the API's answer to the body `question`; None if it fails."""
        header = {"Authorization": f"Basic {b64encode(self.login().encode()).decode()}"}
        return ask_json(self.port, method, path, question, header)

    def variable(self, name: str) -> object:
        """Return the value of a Prefect variable, or None."""
        found = self.ask("GET", f"/api/variables/name/{name}")
        return found["value"] if found else None

    def worker_seen(self, pool: str, since: datetime) -> bool:
        """Return whether a worker of the work pool has sent a heartbeat since that time."""
        workers = self.ask("POST", f"/api/work_pools/{pool}/workers/filter") or []
        seen = [worker["last_heartbeat_time"] for worker in workers]
        return any(time is not None and datetime.fromisoformat(time) >= since for time in seen)

    @property
    def ui_url(self) -> str:
        return f"http://{HOST}:{self.port}"
