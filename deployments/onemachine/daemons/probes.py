"""Probes of local servers. They never raise, and never use a proxy."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 5.0


def listens(port: int) -> bool:
    """Return whether a connection to the loopback port is accepted."""
    with socket.socket() as peer:
        peer.settimeout(PROBE_TIMEOUT_S)
        return peer.connect_ex((HOST, port)) == 0


def connects(path: Path) -> bool:
    """Return whether a connection to the unix socket is accepted."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PROBE_TIMEOUT_S)
        return peer.connect_ex(str(path)) == 0


def answers(port: int, path: str) -> bool:
    """Return whether an HTTP GET on the loopback port is answered with a 2xx status."""
    return _ask(port, "GET", path) is not None


def ask_json(
    port: int,
    method: str,
    path: str,
    question: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return the answer of a JSON API on the loopback port to the body `question`; None if it fails."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    answer = _ask(port, method, path, json.dumps(question or {}).encode(), sent)
    try:
        return None if answer is None else json.loads(answer)
    except ValueError:
        return None


def answers_rpc(port: int, method: str) -> bool:
    """Return whether a JSON-RPC service on the loopback port answers `method`. A service may listen earlier."""
    answer = ask_json(port, "POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": []})
    return isinstance(answer, dict) and "result" in answer


def _ask(
    port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> bytes | None:
    connection = http.client.HTTPConnection(HOST, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.read() if 200 <= answer.status < 300 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
