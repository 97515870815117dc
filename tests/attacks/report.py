"""The table of attacks. Each test has a pytest marker that names the attack, attacker, largest gain and defence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pytest

PROPERTY = "attack"  # of a test report, holds the row as text
MARKER = "attack"


@dataclass(frozen=True, slots=True, order=True)
class Attack:
    """One row of the table. `gain` is the most that the attacker gains."""

    attack: str
    attacker: str
    gain: str
    defence: str

    def to_report(self) -> str:
        """Return the row as text. Parallel test workers send it to the main process in their test reports."""
        return json.dumps(asdict(self))


def attack_of(item: pytest.Item) -> Attack | None:
    """Return the row of a test with `@pytest.mark.attack("what", attacker=..., gain=..., defence=...)`, or None."""
    marker = item.get_closest_marker(MARKER)
    return Attack(*marker.args, **marker.kwargs) if marker else None


def table(reports: Iterable[str]) -> str:
    """Return the rows of `reports` as a table, without duplicates, ordered by attacker."""
    rows = sorted({Attack(**json.loads(text)) for text in reports}, key=lambda row: (row.attacker, row.attack))
    lines = [f"{len(rows)} attacks", ""]
    for attacker in dict.fromkeys(row.attacker for row in rows):
        lines.append(f"{attacker}:")
        lines += [
            f"  {row.attack}\n      gain: {row.gain}; defence: {row.defence}"
            for row in rows
            if row.attacker == attacker
        ]
    return "\n".join(lines)
