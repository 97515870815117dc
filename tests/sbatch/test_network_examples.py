"""Each example about networks does what its comment says; see test_networks.py."""

from __future__ import annotations

import pytest

from deepgrid.workflow import load
from tests.sbatch.examples import FOLDER, NETWORK_EXAMPLES
from tests.sbatch.network_support import does, with_bore
from tests.sbatch.network_support import sandbox as sandbox
from tests.sbatch.sandbox import Sandbox, has_tun


def test_all_examples_of_networks_are_here() -> None:
    assert {path.stem for path in FOLDER.glob("network-*.yaml")} == NETWORK_EXAMPLES.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORK_EXAMPLES)
def test_an_example_does_what_it_says(sandbox: Sandbox, name: str) -> None:
    with_bore(sandbox)
    does(sandbox, load(FOLDER / f"{name}.yaml").model, 0, NETWORK_EXAMPLES[name])
    if name == "network-bore" and has_tun():
        assert "example|local|8000|--to|bore.example.org|" in (sandbox.root / "bore").read_text()
