"""Whether something on this machine serves; never raises, never asks a proxy."""

from __future__ import annotations

import http.client
import socket

HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 2.0


def listens(port: int) -> bool:
    """Whether a connection to the loopback port is accepted."""
    with socket.socket() as peer:
        peer.settimeout(PROBE_TIMEOUT_S)
        return peer.connect_ex((HOST, port)) == 0


def answers(port: int, path: str) -> bool:
    """Whether an HTTP GET on the loopback port is answered with a 2xx status."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return 200 <= connection.getresponse().status < 300
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
