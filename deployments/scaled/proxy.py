"""HAProxy in front of several Prefect API servers: one address, and servers that do not answer are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepgrid.private_files import replace_file
from deployments.onemachine.daemons.private_files import make_private_folder
from deployments.onemachine.daemons.probes import HOST, answers
from deployments.onemachine.daemons.processes import Daemon

NAME = "prefect-proxy"
SETTINGS = """\
global
  maxconn 4000
defaults
  mode http
  timeout connect 5s
  timeout client 120s
  timeout server 120s
  timeout tunnel 1h            # websockets: events, and log lines in the UI
  timeout http-keep-alive 60s
  option redispatch 1          # a request that reached no server goes to another one
  retries 3
  retry-on conn-failure
frontend prefect
  bind {host}:{port}
  default_backend servers
backend servers
  balance leastconn
  option httpchk GET /api/health
  default-server check inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
"""


@dataclass(frozen=True)
class Proxy:
    """The proxy at `port`, for the servers with these names and ports. Its settings are in `folder`."""

    folder: Path
    port: int
    servers: Mapping[str, int]

    def daemon(self) -> Daemon:
        """The proxy's process. It is ready when a server answers through it."""
        make_private_folder(self.folder)
        lines = "".join(f"  server {name} {HOST}:{port}\n" for name, port in self.servers.items())
        file = self.folder / "haproxy.cfg"
        replace_file(file, (SETTINGS.format(host=HOST, port=self.port) + lines).encode())
        return Daemon(NAME, ["haproxy", "-db", "-f", str(file)], lambda: answers(self.port, "/api/health"))
