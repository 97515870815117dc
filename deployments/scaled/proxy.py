"""nginx in front of several Prefect API servers: one address, and servers that do not answer are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from deployments.onemachine.daemons.nginx import nginx, worker_account
from deployments.onemachine.daemons.probes import HOST, answers
from deployments.onemachine.daemons.processes import Daemon

NAME = "prefect-proxy"
CONFIGURATION = Template("""\
daemon off;
${user}worker_processes 1;
worker_rlimit_nofile 8448;
pid $folder/nginx.pid;
error_log stderr error;

events {
    worker_connections 8192;    # a request has one to the client, and one to the server
}

http {
    access_log off;
    client_body_temp_path $folder/client_body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    map $$http_upgrade $$connection_header {    # websockets: events, and log lines in the UI
        ""      "";
        default upgrade;
    }
    upstream servers {
        least_conn;             # a server that hangs keeps its connections, so it gets few new ones
$servers
        keepalive 64;
        keepalive_timeout 2s;   # the servers close theirs after 5 s, and a request must not meet a closing one
    }
    server {
        listen $host:$port backlog=1024;
        client_max_body_size 0;
        proxy_http_version 1.1;
        proxy_set_header Host $$http_host;
        proxy_set_header Upgrade $$http_upgrade;
        proxy_set_header Connection $$connection_header;
        proxy_max_temp_file_size 0;
        proxy_connect_timeout 5s;
        proxy_read_timeout 40s;    # servers send a ping each 20 s through websockets, and clients wait for 60 s
        # What may have had an effect is repeated by clients only.
        proxy_next_upstream error timeout;
        error_page 504 =503 @late;    # clients of Prefect repeat what ends by 502 or 503
        location / {
            proxy_pass http://servers;
        }
        location @late {
            return 503 "no answer of a Prefect server within 40 s";
        }
    }
}
""")


@dataclass(frozen=True)
class Proxy:
    """The proxy at `port`, for the servers with these ports. Its files are in `folder`."""

    folder: Path
    port: int
    servers: Mapping[str, int]

    def daemon(self) -> Daemon:
        """The proxy's process. It is ready when a server answers through it."""
        lines = (f"        server {HOST}:{port} max_fails=1 fail_timeout=5s;" for port in self.servers.values())
        account = worker_account()
        configuration = CONFIGURATION.substitute(
            host=HOST, port=self.port, folder=self.folder, servers="\n".join(lines),
            user=f"user {account};\n" if account else "",
        )  # fmt: skip
        return nginx(NAME, self.folder, configuration, lambda: answers(self.port, "/api/health"))
