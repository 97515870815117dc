"""nginx with the file that `dps services proxy` makes, on a free port, with or without TLS."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.services.edge.proxy_file import EdgeLimits, ProxySettings, proxy_file
from tests.waiting import wait_until

PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass(frozen=True)
class Edge:
    """A running proxy. `authority` is the certificate that clients must trust, `grpc` its address in clear text."""

    url: str
    grpc: str
    file: Path
    authority: Path | None = None


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield a folder whose path is short enough for Unix sockets, and open to this account only."""
    with tempfile.TemporaryDirectory(prefix="edge-") as folder:
        yield Path(folder)


@contextmanager
def running_edge(
    folder: Path, sockets: Path, limits: EdgeLimits | None = None, *, tls: bool = False, **further: object
) -> Iterator[Edge]:
    """Yield the proxy of the services that listen in `sockets`. Its files are in `folder`."""
    if PROGRAM is None:
        pytest.skip("nginx is not installed; ./run setup installs it")
    port, grpc_port = free_port(), free_port()
    authority, certificate, key = certify(folder) if tls else (None, None, None)
    settings = ProxySettings(
        sockets=(sockets,), listen=(f"127.0.0.1:{port}",), clear_grpc=f"127.0.0.1:{grpc_port}", name="localhost",
        certificate=certificate, key=key, state=folder, workers="1",
        account="root" if os.getuid() == 0 else None, **further,
    )  # type: ignore[arg-type]  # fmt: skip
    file = folder / "proxy.conf"
    file.write_text(proxy_file(settings, limits))
    with subprocess.Popen([PROGRAM, "-e", "stderr", "-c", str(file)]) as process:
        try:
            wait_until(lambda: answers(port), lambda: "the proxy does not listen")
            url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
            yield Edge(url, f"127.0.0.1:{grpc_port}", file, authority)
        finally:
            process.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def certify(folder: Path, host: str = "localhost") -> tuple[Path, Path, Path]:
    """Make an authority and its certificate for a host.

    Returns the files of the authority, the certificate and its key.
    """
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
