"""A process table in its own folder. Processes that a test leaves running are ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.onemachine.daemons.processes import ProcessTable


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    processes = ProcessTable(tmp_path / "state")
    yield processes
    for name in processes.names():
        processes.stop(name)
