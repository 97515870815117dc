"""Public names with their signatures as text, and the breaking changes between such a text and the working tree.

griffe reads both without importing anything. It compares names, kinds, arguments and defaults, but not types.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]
RELEASED = Path(__file__).parent / "released.txt"
PACKAGE = "deepgrid.client"
TITLE = "# Public names of deepgrid "
SPECIAL = ("__enter__", "__exit__", "__aenter__", "__aexit__")
MADE_BY_USERS = ("AsyncGrid", "ClientSettings", "CustomerSettings", "Grid")  # other constructors may change
COLOURS = re.compile(r"\x1b\[\d+m")


def current() -> str:
    """Return the snapshot of the working tree."""
    client = griffe.load(PACKAGE, search_paths=[ROOT], resolve_aliases=True, allow_inspection=False)
    lines = [f"{TITLE}{version()}: what its users may rely on. Written by tools/public_api."]
    names = sorted(str(name) for name in client.exports or ())
    for name in names:
        lines += ["", *_object(_final(client[name]), {*names, "Exception"})]
    return "\n".join(lines) + "\n"


def breaking_changes(released: str, now: str) -> list[str]:
    """Return the changes that a user of the release would have to make, one sentence each."""
    old, new = (griffe.visit("deepgrid", filepath=Path("deepgrid.pyi"), code=text) for text in (released, now))
    return [
        change.explain(griffe.ExplanationStyle.ONE_LINE).strip() for change in griffe.find_breaking_changes(old, new)
    ]


def may_break(released: str) -> bool:
    """Return whether the version allows breaking changes: its major part grew, or before 1.0.0 its minor part."""
    return _compatible(version()) > _compatible(released.removeprefix(TITLE).partition(":")[0])


def version() -> str:
    """Return the version of the working tree."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _compatible(number: str) -> tuple[int, ...]:
    major, minor = (int(part) for part in number.split(".")[:2])
    return (major,) if major else (0, minor)


def _object(found: griffe.Object, bases: Collection[str]) -> Iterator[str]:
    if isinstance(found, griffe.Class):
        yield f"class {found.name}({', '.join(base for base in map(str, found.bases) if base in bases)}):"
        members = [_final(member) for name, member in sorted(found.all_members.items()) if _is_public(name, found.name)]
        lines = [f"    {line}" for member in members for line in _object(member, bases)]
        yield from lines or ["    ..."]
    elif isinstance(found, griffe.Function):
        yield _signature(found)
    elif isinstance(found, griffe.Attribute):
        yield f"{found.name}: {found.annotation or 'Any'}"


def _signature(found: griffe.Function) -> str:
    words = "async def" if "async" in found.labels else "def"
    arguments = found.signature(return_type=True).removeprefix(f"{found.name}(")
    if isinstance(found.parent, griffe.Class) and "staticmethod" not in found.labels:
        arguments = f"self{'' if arguments.startswith(')') else ', '}{arguments}"
    return f"{words} {found.name}({arguments}: ..."


def _final(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found


def _is_public(name: str, owner: str) -> bool:
    return not name.startswith("_") or name in SPECIAL or (name == "__init__" and owner in MADE_BY_USERS)
