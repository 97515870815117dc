"""The surface of the contracts: functions, events and errors of the ABI with the NatSpec of the sources.

The sources are read directly, so the page needs no compiler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from eth_utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector

from tools.site.tables import code, prose, table

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "contracts" / "src"
LIBRARY = ROOT / "contracts" / "node_modules" / "@openzeppelin" / "contracts"
INHERITED = ("access/*.sol", "token/ERC20/**/*.sol", "interfaces/*.sol", "utils/**/*.sol")
COMPILED = ROOT / "deepgrid" / "chain" / "compiled"
CONTRACTS = ("MetaScheduler", "ProviderManager", "Credit")
KINDS = {"function": "Functions", "event": "Events", "error": "Errors"}
_DECLARATION = re.compile(r"^[ \t]*(function|event|error) (\w+)\s*\(", re.M)
_PUBLIC = re.compile(r"^[ \t]*[^\n/=;]*\bpublic\b[^\n=;(]*?(\w+)\s*[=;]", re.M)  # a variable with a getter
_TAG = re.compile(r"@(notice|dev|param|return|inheritdoc|custom:\w+|title|author)\b")


@dataclass
class NatSpec:
    """The comment of one declaration."""

    notice: str = ""
    dev: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: list[str] = field(default_factory=list)

    @property
    def words(self) -> int:
        """Return its number of words, to choose between an interface and its implementation."""
        return len(f"{self.notice} {self.dev} {' '.join(self.params.values())} {' '.join(self.returns)}".split())


def parse(comment: str) -> NatSpec:
    """Read the text of a comment. Without a tag it is a notice."""
    found = NatSpec()
    parts = _TAG.split("@notice " + comment if not comment.lstrip().startswith("@") else comment)
    for tag, text in zip(parts[1::2], parts[2::2], strict=True):
        flat = " ".join(text.split())
        if tag == "param":
            name, _, meaning = flat.partition(" ")
            found.params[name] = meaning
        elif tag == "return":
            found.returns.append(flat)
        elif tag == "dev":
            found.dev = f"{found.dev} {flat}".strip()
        elif tag == "notice":
            found.notice = f"{found.notice} {flat}".strip()
    return found


@cache
def natspec_of(contract: str) -> dict[tuple[str, str], NatSpec]:
    """Return NatSpec by kind and name, from the libraries of a contract, and with priority from our own sources."""
    own = [file for file in SOURCES.rglob("*.sol") if (file.stem == "Credit") == (contract == "Credit")]
    library = [file for pattern in INHERITED for file in LIBRARY.glob(pattern)]
    return _declarations(library) | _declarations(own)


def _declarations(files: Iterable[Path]) -> dict[tuple[str, str], NatSpec]:
    """Return the comments by kind and name. Of several declarations, the fullest comment counts."""
    found: dict[tuple[str, str], NatSpec] = {}
    for file in sorted(files):
        source = file.read_text()
        declarations = [(match.start(), match[1], match[2]) for match in _DECLARATION.finditer(source)]
        declarations += [(match.start(), "function", match[1]) for match in _PUBLIC.finditer(source)]
        for start, kind, name in declarations:
            said = parse(_comment_before(source, start))
            if said.words > found.get((kind, name), NatSpec()).words:
                found[kind, name] = said
    return found


def _comment_before(source: str, start: int) -> str:
    lines = []
    for line in reversed(source[:start].rstrip().splitlines()):
        if not line.strip().startswith("///"):
            break
        lines.insert(0, line.strip().removeprefix("///"))
    if not lines and (block := re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*\Z", source[:start], re.S)):
        lines = [line.strip().lstrip("*") for line in block[1].splitlines()]
    return "\n".join(lines)


def entries(contract: str) -> Iterator[dict[str, Any]]:
    """Yield functions, events and errors of a contract's ABI."""
    abi = json.loads((COMPILED / f"{contract}.json").read_text())["abi"]
    yield from (entry for entry in abi if entry["type"] in KINDS)


def reference() -> str:
    """Return a part per contract, with a section per kind."""
    parts = []
    for contract in CONTRACTS:
        parts.append(f"## {contract}")
        for kind, title in KINDS.items():
            of_kind = sorted((one for one in entries(contract) if one["type"] == kind), key=lambda one: one["name"])
            if of_kind:
                parts += [f"### {title} of {contract}", *(_entry(one, contract) for one in of_kind)]
    return "\n\n".join(parts)


def _entry(entry: dict[str, Any], contract: str) -> str:
    said = natspec_of(contract).get((entry["type"], entry["name"]), NatSpec())
    arguments = ", ".join(f"{_type(one)} {one['name']}".strip() for one in entry["inputs"])
    results = ", ".join(_type(one) for one in entry.get("outputs", ()))
    state = entry.get("stateMutability", "")
    signature = f"{entry['name']}({arguments})" + (f" {state}" if state in ("view", "pure", "payable") else "")
    parts = [f"#### {entry['name']}", code(signature + (f" returns ({results})" if results else ""))]
    parts += [prose(text) for text in (said.notice, said.dev) if text]
    rows = [(code(name), prose(meaning)) for name, meaning in said.params.items()]
    rows += [("returns", prose(meaning)) for meaning in said.returns]
    if rows:
        parts.append(table(("parameter", "means"), rows))
    return "\n\n".join([*parts, _identity(entry)])


def _type(parameter: dict[str, Any]) -> str:
    """Return the type as the sources name it: `struct Label[]` is `Label[]`."""
    kind: str = parameter.get("internalType", parameter["type"])
    return re.sub(r"^(?:struct|enum|contract) ", "", kind)


def _identity(entry: dict[str, Any]) -> str:
    if entry["type"] == "event":
        return f"Topic: `0x{event_abi_to_log_topic(entry).hex()}`"  # type: ignore[arg-type]
    selector = function_abi_to_4byte_selector({**entry, "type": "function"})  # type: ignore[arg-type,typeddict-item]
    return f"Selector: `0x{selector.hex()}`"
