"""Each external function, event and error of the contracts has NatSpec for itself, its arguments and its results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.contracts.forge import CONTRACTS

SOURCES = sorted((CONTRACTS / "src").rglob("*.sol"))
_DECLARATION = re.compile(
    r"""(?P<doc>(?:^[ ]*///.*\n)*)
        ^[ ]*(?:(?P<kind>function|event|error|constructor|fallback)[ ]?(?P<name>\w*)
                \((?P<inputs>[^)]*)\)(?P<rest>[^{;]*)[{;]
               |[\w.]+[ ]public[ ](?:(?:constant|immutable)[ ])?(?P<variable>\w+)[ ]?[;=])""",
    re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True)
class Declaration:
    """A part of the surface: the names of its arguments and results (empty for a nameless one), and its comment."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    doc: str


def declarations(source: str) -> Iterator[Declaration]:
    """Yield everything in a source that clients can see: what is external or public, and all events and errors."""
    for found in _DECLARATION.finditer(source):
        rest = found["rest"] or ""
        if found["kind"] in ("function", "fallback") and not re.search(r"\b(external|public)\b", rest):
            continue
        results = re.search(r"returns\s*\(([^)]*)\)", rest)
        yield Declaration(
            name=found["variable"] or found["name"] or found["kind"],
            inputs=_names(found["inputs"] or ""),
            outputs=_names(results[1]) if results else (),
            doc=found["doc"],
        )


def _names(fields: str) -> tuple[str, ...]:
    """Return the name of each field. A field is a type, perhaps a data location, and perhaps a name."""
    words = (field.split() for field in fields.split(",") if field.strip())
    return tuple(parts[-1] if len(parts) > 1 and parts[-1] not in ("memory", "calldata") else "" for parts in words)


def gaps(found: Declaration, interfaces: dict[str, set[str]]) -> list[str]:
    """Return what the comment of a declaration lacks.

    One that inherits its comment must name an interface that has it.
    """
    if inherited := re.search(r"@inheritdoc (\w+)", found.doc):
        return [] if found.name in interfaces.get(inherited[1], set()) else [f"@inheritdoc {inherited[1]}"]
    missing = [] if re.search(r"@notice \S", found.doc) else ["@notice"]
    missing += [f"@param {name}" for name in found.inputs if not re.search(rf"@param {name} \S", found.doc)]
    missing += [f"@return {name}" for name in found.outputs if name and not re.search(rf"@return {name} \S", found.doc)]
    if len(found.outputs) != (written := len(re.findall(r"@return \S", found.doc))):
        missing.append(f"{len(found.outputs)} times @return, not {written} times")
    return missing


def _interfaces() -> dict[str, set[str]]:
    """Return the names that each interface of the sources declares."""
    folder = CONTRACTS / "src" / "interfaces"
    return {file.stem: {found.name for found in declarations(file.read_text())} for file in folder.glob("*.sol")}


def _report(file: Path, interfaces: dict[str, set[str]]) -> list[str]:
    return [
        f"{file.name}: {found.name}: {gap}"
        for found in declarations(file.read_text())
        for gap in gaps(found, interfaces)
    ]


def test_everything_that_clients_see_has_natspec() -> None:
    interfaces = _interfaces()
    assert [line for file in SOURCES for line in _report(file, interfaces)] == []


def test_the_natspec_check_reads_every_declaration() -> None:
    names = [found.name for file in SOURCES for found in declarations(file.read_text())]
    assert {"requestNewJob", "cancelJob", "fetchPage", "mint", "JobSettledEvent", "CutNotDue", "credit"} <= set(names)
    assert len(names) > 200


def test_the_natspec_check_finds_missing_tags() -> None:
    source = """
    /// @notice Pays.
    /// @param amount Amount in wei.
    function pay(uint256 amount, address to) external returns (bool done, uint256) {
    function _private(uint256 amount) internal {
    /// Without a tag.
    event Paid(uint256 amount);
    /// @inheritdoc IOther
    uint256 public constant MOST = 1;
    """
    found = {each.name: gaps(each, {"IOther": {"LEAST"}}) for each in declarations(source)}
    assert found == {
        "pay": ["@param to", "@return done", "2 times @return, not 0 times"],
        "Paid": ["@notice", "@param amount"],
        "MOST": ["@inheritdoc IOther"],
    }
