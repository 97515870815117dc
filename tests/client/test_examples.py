"""The programs of the guide for Python run as they stand, on a live grid."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from deepgrid.client import Grid
from tests.cli.live import EXAMPLE
from tests.client.conftest import Customer
from tests.client.support import SimulatedCluster, run_program
from tests.docs.blocks import blocks

GUIDE = "docs/how-to/python.md"
BLOCKS = {str(block): block.text for block in blocks() if block.page == GUIDE and block.kind == "python"}
A_JOB = re.compile(r"\bjob\(7\)")


@pytest.mark.parametrize("name", BLOCKS)
def test_it_runs(
    name: str, customer: Customer, cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(EXAMPLE, tmp_path / "train.yaml")
    monkeypatch.chdir(tmp_path)
    text = BLOCKS[name]
    if A_JOB.search(text):  # a job of this customer, whatever its number is
        with Grid(customer.key, customer.book) as grid:
            text = A_JOB.sub(f"job({grid.submit(EXAMPLE, credits=100).id})", text)
    run_program(text, customer)


def test_the_guide_begins_with_the_import() -> None:
    assert len(BLOCKS) >= 7
    assert all(re.search(r"^from deepgrid import (?:Async)?Grid", text, re.M) for text in BLOCKS.values())
