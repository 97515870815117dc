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
    """Return the types of the fields, down to the fields of structs."""
    parts = (
        f"({_types(field['components'])}){field['type'].removeprefix('tuple')}"
        if "components" in field
        else f"{field['type']}{' indexed' if field.get('indexed') else ''}"
        for field in fields
    )
    return ",".join(parts)


def _signatures(abi: list[dict[str, Any]], kind: str) -> set[str]:
    """Return name, arguments, results and mutability of each entry of this kind."""
    return {
        f"{entry['name']}({_types(entry['inputs'])})"
        f" {entry.get('stateMutability', '')} ({_types(entry.get('outputs', []))})"
        for entry in abi
        if entry["type"] == kind
    }


def _names(signatures: set[str]) -> set[str]:
    return {signature.partition("(")[0] for signature in signatures}


@pytest.fixture(scope="module")
def interface() -> list[dict[str, Any]]:
    """The ABI of the interface, from a fresh build."""
    forge("build", "src/interfaces/IMetaScheduler.sol", builds="surface", profile="unoptimised")
    built: dict[str, Any] = json.loads((CONTRACTS / "out/surface/IMetaScheduler.sol/IMetaScheduler.json").read_text())
    abi: list[dict[str, Any]] = built["abi"]
    return abi


@pytest.fixture(scope="module")
def exported() -> list[dict[str, Any]]:
    """The exported ABI. `./run lint` compares it with both contracts."""
    abi: list[dict[str, Any]] = json.loads((COMPILED / "MetaScheduler.json").read_text())["abi"]
    return abi


def test_the_interface_has_exactly_the_exported_functions(
    interface: list[dict[str, Any]], exported: list[dict[str, Any]]
) -> None:
    served = _signatures(exported, "function")
    assert _signatures(interface, "function") == served
    assert len(served) > 60


@pytest.mark.parametrize(("kind", "file"), [("event", "Events.sol"), ("error", "Errors.sol")])
def test_each_event_and_error_is_declared_in_the_interface_or_its_file(
    interface: list[dict[str, Any]], exported: list[dict[str, Any]], kind: str, file: str
) -> None:
    declared = set(re.findall(rf"^{kind} (\w+)\(", (SOURCE / file).read_text(), re.MULTILINE))
    shown = declared | _names(_signatures(interface, kind))
    assert _names(_signatures(exported, kind)) - shown - LIBRARY_ERRORS == set()
    assert file in (SOURCE / "interfaces" / "IMetaScheduler.sol").read_text()
