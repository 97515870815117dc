"""Two contracts share one storage: the MetaScheduler hands rare calls to RareCalls by delegatecall."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contracts.forge import CONTRACTS, forge

PAIR = ("MetaScheduler", "RareCalls")


def built(contract: str) -> dict[str, Any]:
    """Return the compiler's output on a contract."""
    told: dict[str, Any] = json.loads((CONTRACTS / f"out/layout/{contract}.sol/{contract}.json").read_text())
    return told


def variables(contract: str) -> list[dict[str, Any]]:
    """Return its stored variables with slot, offset and type, without the compiler's running numbers."""
    layout = built(contract)["storageLayout"]
    types = layout["types"]

    def shape(name: str) -> object:
        known = types[name]
        parts = [
            (part["label"], part["slot"], part["offset"], shape(part["type"])) for part in known.get("members", [])
        ]
        nested = [shape(known[key]) for key in ("key", "value", "base") if key in known]
        return known["label"], known["numberOfBytes"], parts, nested

    return [
        {
            "name": entry["label"],
            "place": (int(entry["slot"]), entry["offset"]),
            "shape": shape(entry["type"]),
        }
        for entry in layout["storage"]
    ]


def declared(contract: str) -> list[str]:
    """Return the names of the stored variables that the contract's own source declares."""
    (body,) = (node for node in built(contract)["ast"]["nodes"] if node.get("name") == contract)
    return [
        node["name"]
        for node in body["nodes"]
        if node["nodeType"] == "VariableDeclaration" and node["mutability"] == "mutable"
    ]


@pytest.mark.deep
def test_both_contracts_have_the_same_storage_layout() -> None:
    files = [f"src/{contract}.sol" for contract in PAIR]
    wanted = ["--ast", "--extra-output", "storageLayout"]
    forge("build", "--force", *files, *wanted, builds="layout", profile="unoptimised")
    mine, others = (variables(contract) for contract in PAIR)
    assert len(mine) > 10
    assert mine == others
    assert [declared(contract) for contract in PAIR] == [[], []]
