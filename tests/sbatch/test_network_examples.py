"""Each example about networks does what its comment says; see test_networks.py."""

from __future__ import annotations

import pytest

from deepgrid.workflow import load
from tests.sbatch.examples import FOLDER, NETWORK_EXAMPLES
from tests.sbatch.network_support import does
from tests.sbatch.network_support import sandbox as sandbox
from tests.sbatch.sandbox import Sandbox


def test_all_examples_of_networks_are_here() -> None:
    assert {path.stem for path in FOLDER.glob("network-*.yaml")} == NETWORK_EXAMPLES.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORK_EXAMPLES)
def test_an_example_does_what_it_says(sandbox: Sandbox, name: str) -> None:
    does(sandbox, load(FOLDER / f"{name}.yaml").model, 0, NETWORK_EXAMPLES[name])
