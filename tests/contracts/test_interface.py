"""`IMetaScheduler` shows everything that clients can call at the MetaScheduler's address.

The exported ABI holds the surface of the MetaScheduler and of RareCalls, which it serves through its fallback.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contracts.forge import COMPILED, CONTRACTS, forge

SOURCE = CONTRACTS / "src"
# Errors that OpenZeppelin's libraries raise when a transfer of credits or the call of RareCalls fails.
LIBRARY_ERRORS = {"AddressEmptyCode", "FailedCall", "SafeERC20FailedOperation"}


def _types(fields: list[dict[str, Any]]) -> str:
    """The types of the fields, down to the fields of structs."""
    parts = (
        f"({_types(field['components'])}){field['type'].removeprefix('tuple')}"
        if "components" in field
        else f"{field['type']}{' indexed' if field.get('indexed') else ''}"
        for field in fields
    )
    return ",".join(parts)


def _signatures(abi: list[dict[str, Any]], kind: str) -> set[str]:
    """Name, arguments, results and mutability of each entry of this kind."""
    return {
        f"{entry['name']}({_types(entry['inputs'])})"
        f" {entry.get('stateMutability', '')} ({_types(entry.get('outputs', []))})"
        for entry in abi
        if entry["type"] == kind
    }


def _names(signatures: set[str]) -> set[str]:
    return {signature.partition("(")[0] for signature in signatures}


@pytest.fixture(scope="module")
def built() -> dict[str, list[dict[str, Any]]]:
    """The ABIs of both contracts and of the interface, from a fresh build of the sources."""
    forge("build", "src", builds="surface", profile="unoptimised")
    names = ("MetaScheduler", "RareCalls", "IMetaScheduler")
    return {name: json.loads((CONTRACTS / f"out/surface/{name}.sol/{name}.json").read_text())["abi"] for name in names}


def test_the_interface_has_exactly_the_functions_of_both_contracts(built: dict[str, list[dict[str, Any]]]) -> None:
    served = _signatures([*built["MetaScheduler"], *built["RareCalls"]], "function")
    assert _signatures(built["IMetaScheduler"], "function") == served
    assert len(served) > 60


def test_the_exported_abi_has_exactly_the_functions_of_the_interface(
    built: dict[str, list[dict[str, Any]]],
) -> None:
    exported = json.loads((COMPILED / "MetaScheduler.json").read_text())["abi"]
    assert _signatures(exported, "function") == _signatures(built["IMetaScheduler"], "function")


@pytest.mark.parametrize(("kind", "file"), [("event", "Events.sol"), ("error", "Errors.sol")])
def test_each_event_and_error_is_declared_in_the_interface_or_its_file(
    built: dict[str, list[dict[str, Any]]], kind: str, file: str
) -> None:
    exported = json.loads((COMPILED / "MetaScheduler.json").read_text())["abi"]
    declared = set(re.findall(rf"^{kind} (\w+)\(", (SOURCE / file).read_text(), re.MULTILINE))
    shown = declared | _names(_signatures(built["IMetaScheduler"], kind))
    assert _names(_signatures(exported, kind)) - shown - LIBRARY_ERRORS == set()
    assert file in (SOURCE / "interfaces" / "IMetaScheduler.sol").read_text()
