"""`evidence.json` records the contracts on which the slowest tests passed, as a fingerprint per test. A proof that
takes half an hour is part of the deep run only. When it holds, it records the fingerprint of its contracts. A quick
test compares the two, so a change of the contracts without a new proof is found at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from tests.contracts.forge import COMPILED, CONTRACTS

FILE = Path(__file__).parent / "evidence.json"


def fingerprint(name: str) -> str:
    """Return the SHA-256 of the deployed bytecode and of the claims of `name`."""
    found = hashlib.sha256()
    for compiled in sorted(COMPILED.glob("*.json")):
        found.update(json.loads(compiled.read_text())["bytecode"].encode())
    found.update((CONTRACTS / f"test/halmos/{name}.sol").read_bytes())
    return found.hexdigest()


def record(name: str) -> None:
    """Note that the claims of `name` hold for these contracts."""
    noted = json.loads(FILE.read_text()) | {name: fingerprint(name)}
    FILE.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n")


def missing(names: Iterable[str]) -> list[str]:
    """Return the names whose claims were not proved for these contracts."""
    noted = json.loads(FILE.read_text())
    return [name for name in names if noted.get(name) != fingerprint(name)]
