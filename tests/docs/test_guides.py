"""The workflow files of the guides for customers do what the pages say.

Those that need neither a grid nor hardware run here; `tests/grid/test_guides.py` types all commands of the guides.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid import workflow
from tests.docs.blocks import blocks
from tests.sbatch.support import Bench, without_progress

PRINTS = {
    "environment": ["rate 0.1, seed 42, mode fast"],
    "sweep": ["rate 0.1, seed 0"],
}


@pytest.mark.parametrize("page", PRINTS)
def test_a_workflow_file_of_a_guide(page: str, tmp_path: Path) -> None:
    [block] = [block for block in blocks() if block.page == f"docs/how-to/{page}.md" and block.kind == "yaml"]
    outcome = Bench(tmp_path / "bench").run(workflow.parse(block.text, page).model)
    assert (outcome.status, without_progress(outcome.output)) == (0, PRINTS[page])
