"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# A shell starts its background jobs deaf to SIGINT, and children inherit that. Tests that interrupt
# a command must not depend on how they were started themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent
LONGEST_FIRST = ("grid", "sbatch", "contracts", "onemachine", "chain")
FIRST_PORT, LAST_PORT = 20000, 32000


def pytest_configure() -> None:
    """Tests side by side take their ports from ranges of their own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        width = (LAST_PORT - FIRST_PORT) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first = FIRST_PORT + width * int(worker.removeprefix("gw"))
        os.environ["DEEPGRID_PORTS"] = f"{first}-{first + width}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side go folders, since the tests of one share what is started for them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_folder(item)))
    rank = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(_folder(item), len(rank)))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).parts[0]
