"""A private Redis: loopback only, one password, data under the state folder."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from deepgrid.files.private_files import make_private_folder, read_or_create, replace_file
from deployments.onemachine.daemons.probes import HOST, PROBE_TIMEOUT_S
from deployments.onemachine.daemons.processes import Daemon

NAME = "redis"
SETTINGS = """\
bind {host}
port {port}
dir "{folder}"
requirepass {password}
# Slots of concurrency limits and undelivered events survive a crash.
appendonly yes
appendfsync everysec
save ""
# Refuse writes rather than forget messages or leases.
maxmemory 512mb
maxmemory-policy noeviction
"""


@dataclass(frozen=True)
class Redis:
    """The server with its data in `folder`. The password is in its settings file of mode 0600, never in arguments."""

    folder: Path
    port: int

    def daemon(self) -> Daemon:
        """The server's process. It is ready when it answers with its data loaded."""
        make_private_folder(self.folder)
        settings = SETTINGS.format(host=HOST, port=self.port, folder=self.folder, password=self._password)
        replace_file(self._settings, settings.encode())
        return Daemon(NAME, ["redis-server", str(self._settings)], self._is_ready)

    def url(self, database: int) -> str:
        """URL of one of its databases. It contains the password: never log it."""
        return f"redis://:{self._password}@{HOST}:{self.port}/{database}"

    def _is_ready(self) -> bool:
        import redis  # slow, and commands such as `./run status` do not need it
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        try:
            with redis.Redis(
                HOST, self.port, password=self._password, retry=Retry(NoBackoff(), 0),
                socket_timeout=PROBE_TIMEOUT_S, socket_connect_timeout=PROBE_TIMEOUT_S,
            ) as client:  # fmt: skip
                return bool(client.ping())
        except redis.RedisError:
            return False

    @property
    def _settings(self) -> Path:
        return self.folder / "redis.conf"

    @property
    def _password(self) -> str:
        make_private_folder(self.folder)
        return read_or_create(self.folder / "password", lambda: secrets.token_hex(16))
