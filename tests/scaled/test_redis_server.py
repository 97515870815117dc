"""The private Redis is ready when it answers with its password, and not before."""

from __future__ import annotations

import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from deployments.onemachine.daemons.processes import ProcessTable
from deployments.scaled.grid import Redis


@pytest.fixture
def server(tmp_path: Path) -> Redis:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Redis(tmp_path / "redis", int(probe.getsockname()[1]))


def test_a_port_that_nothing_listens_at_is_not_ready(server: Redis) -> None:
    assert not server.daemon().ready()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_it_is_ready_with_its_own_password_only(server: Redis, tmp_path: Path) -> None:
    table, daemon = ProcessTable(tmp_path / "state"), server.daemon()
    table.start(daemon)
    try:
        table.wait_ready(daemon)
        assert daemon.ready()
        assert not replace(server, folder=tmp_path / "other").daemon().ready()
    finally:
        table.stop(daemon.name)
