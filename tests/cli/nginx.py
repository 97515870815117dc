"""nginx with the configuration of deployments/proxy, on a free port, with a certificate of an authority of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

REPOSITORY = Path(__file__).parents[2]
PROXY = REPOSITORY / "deployments" / "proxy"
UNPACKED = REPOSITORY / ".grid" / "debian"
WITHIN_S = 60.0
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True)
class Proxy:
    """A running proxy at `url`. `authority` is the certificate that clients must trust."""

    url: str
    authority: Path


def program(path: str) -> str:
    """A program that `./run test` unpacked. Skips the test when there is none."""
    if not (UNPACKED / path).exists():
        pytest.skip(f"there is no {path}; `./run test` fetches it from a mirror of Debian")
    return str(UNPACKED / path)


def certify(folder: Path, host: str = "localhost") -> tuple[Path, Path, Path]:
    """An authority, and a certificate of it for a host: the authority's file, the certificate, its key."""
    authority, key_of_authority, request = (folder / name for name in ("ca.pem", "ca.key", "request.pem"))
    certificate, key, names = (folder / name for name in ("server.pem", "server.key", "names"))
    names.write_text(f"subjectAltName=DNS:{host}\n")
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for argv in (
        [*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", key_of_authority, "-out", authority],
        [*new, "-subj", f"/CN={host}", "-keyout", key, "-out", request],
        ["openssl", "x509", "-req", "-days", "2", "-in", request, "-CA", authority, "-CAkey", key_of_authority,
         "-CAcreateserial", "-extfile", names, "-out", certificate],
    ):  # fmt: skip
        subprocess.run(argv, check=True, capture_output=True)
    return authority, certificate, key


@contextmanager
def running_nginx(folder: Path, services: str, node: str) -> Iterator[Proxy]:
    """The proxy in front of the services, and at /node of the chain's node, as an operator may add it."""
    binary = program("usr/sbin/nginx")
    authority, certificate, key = certify(folder)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    site = (PROXY / "nginx.conf").read_text()
    letsencrypt = "/etc/letsencrypt/live/jobs.example.org"
    for old, new in (
        ("listen 443 ssl http2", f"listen 127.0.0.1:{port} ssl http2"), ("jobs.example.org;", "localhost;"),
        (f"{letsencrypt}/fullchain.pem", str(certificate)), (f"{letsencrypt}/privkey.pem", str(key)),
        ("server 127.0.0.1:3000;", f"server {urlsplit(services).netloc};"),
        ("    # Existing clients", f"    location = /node {{ proxy_pass {node}/; }}\n\n    # Existing clients"),
    ):  # fmt: skip
        assert old in site, old
        site = site.replace(old, new)
    places = "".join(f"{name}_temp_path {folder}/{name};\n" for name in FOLDERS)
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{places}{site}\n}}\n"
    )
    argv = [binary, "-p", str(folder), "-c", str(config), "-e", f"{folder}/error.log"]
    if os.getuid() == 0:
        argv += ["-g", "user root;"]
    tried = subprocess.run([*argv, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert "warn" not in tried.stderr, tried.stderr
    with subprocess.Popen(argv) as process:
        try:
            until_open(port)
            yield Proxy(f"https://localhost:{port}", authority)
        finally:
            process.terminate()


def until_open(port: int) -> None:
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the proxy does not listen"
            time.sleep(0.05)
