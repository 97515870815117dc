"""Each example of a network does what its comment says; see test_networks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.workflow import load
from tests.sbatch import test_networks
from tests.sbatch.sandbox import Sandbox, has_tun
from tests.sbatch.test_networks import does, with_bore

sandbox = test_networks.sandbox
FOLDER = Path(__file__).parents[2] / "examples"

EXAMPLES = {
    "network-own": ["hello"],
    "network-dns": ["nameserver 192.0.2.53", "nameserver 192.0.2.54"],
    "network-wireguard": ["wg0 10.9.0.2/24"],
    "network-virtual": ["greetings from 10.7.0.2"],
    "network-bore": ["that was two seconds"],
}


def test_all_examples_of_networks_are_here() -> None:
    assert {path.stem for path in FOLDER.glob("network-*.yaml")} == EXAMPLES.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_it_says(sandbox: Sandbox, name: str) -> None:
    with_bore(sandbox)
    does(sandbox, load(FOLDER / f"{name}.yaml").model, 0, EXAMPLES[name])
    if name == "network-bore" and has_tun():
        assert "example|local|8000|--to|bore.example.org|" in (sandbox.root / "bore").read_text()
