"""A temporary Prefect server for tests of flows, without a grid."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from deployments.onemachine.daemons.ports import PortBook

START_WITHIN_S = 300


@contextmanager
def temporary_prefect() -> Iterator[None]:
    """Let Prefect's client use a server of its own, at a port of this worker's range.

    Prefect's choice is a port of outgoing connections, which another program may get until the server listens there.
    """
    from prefect.testing import utilities  # slow to import

    with tempfile.TemporaryDirectory() as folder:
        port = PortBook(Path(folder) / "ports.json").port("prefect")
        with (
            patch.object(utilities, "_find_available_port", lambda: port),
            utilities.prefect_test_harness(server_startup_timeout=START_WITHIN_S),
        ):
            yield
