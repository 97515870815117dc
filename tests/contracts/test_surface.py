"""The compiled ABI has everything in the table of `surface.py`, which existing clients use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.support import compiled
from tests.contracts.surface import ENUMS, ERRORS, EVENTS, FUNCTIONS, LEFT_OUT, PARTS, STRUCTS, abi_of

ROOT = Path(__file__).parents[2]


def _shape(field: dict[str, Any], *, names: bool) -> str:
    """Return a field's type down to the fields of its structs, which clients know by their names."""
    if "components" not in field:
        return f"{field['type']} {field['name']}" if names else str(field["type"])
    inner = ", ".join(_shape(part, names=True) for part in field["components"])
    return f"({inner}){str(field['type']).removeprefix('tuple')}"


def _inputs(entry: dict[str, Any]) -> str:
    """Return the arguments by type and order.

    Arguments of events and errors also have names and `indexed`.
    """
    named = entry["type"] != "function"
    parts = [f"{_shape(f, names=named)}{' indexed' if f.get('indexed') else ''}" for f in entry["inputs"]]
    return f"{entry['type']} {entry['name']}({', '.join(parts)})"


def _outputs(entry: dict[str, Any]) -> list[str]:
    """Return the results. A number has 32 bytes for any width, so a client that expects uint256 reads it too."""
    shapes = [_shape(field, names=False) for field in entry.get("outputs", [])]
    return [re.sub(r"^uint\d+$", "uint256", shape) for shape in shapes]


@pytest.mark.parametrize("part", PARTS)
def test_the_abi_has_every_function_event_and_error_of_existing_clients(part: str) -> None:
    offered = {_inputs(entry): entry for entry in compiled(PARTS[part]) if entry["type"] != "constructor"}
    wanted = abi_of(part)
    assert [_inputs(entry) for entry in wanted if _inputs(entry) not in offered] == []
    for entry in wanted:
        found = offered[_inputs(entry)]
        assert _outputs(found) == _outputs(entry), entry["name"]
        assert found.get("stateMutability") == entry.get("stateMutability"), entry["name"]


def test_enums_have_the_same_members_in_the_same_order() -> None:
    source = (ROOT / "contracts" / "src" / "Types.sol").read_text()
    for name, members in ENUMS.items():
        found = re.search(rf"enum {name} \{{([^}}]*)\}}", source)
        assert found is not None, name
        assert re.findall(r"\w+", found[1]) == members.split()


def test_functions_left_out_are_absent_and_documented() -> None:
    everything = set(PARTS.values())
    page = (ROOT / "docs" / "explanation" / "contracts.md").read_text()
    section = re.search(r"^## Left out on purpose\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    for part, names in LEFT_OUT.items():
        assert part in section[1], part
        serving = {PARTS[part]} if part in PARTS else everything
        offered = {entry.get("name") for contract in serving for entry in compiled(contract)}
        for name in names.split():
            assert name not in offered, name
            assert f"`{name}" in section[1], name


def test_the_whole_table_of_functions_is_parsed() -> None:
    """A line that is no declaration would be skipped silently."""
    for table in (FUNCTIONS, EVENTS, ERRORS):
        for part, text in table.items():
            kind = "function" if table is FUNCTIONS else "event" if table is EVENTS else "error"
            read = [entry for entry in abi_of(part) if entry["type"] == kind]
            starts = re.findall(r"^    (?=\w)", text.replace("        ", "@"), re.MULTILINE)
            assert len(read) == len(starts), part
    assert all(field.split()[0] for text in STRUCTS.values() for field in text.split(", "))
