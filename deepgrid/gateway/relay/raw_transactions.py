"""Reads the destination of a signed transaction, before it is handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rlp

# Position of the chain's id and of the destination in transactions with an access list, and with a dynamic fee.
_TYPED = {1: (0, 4, 11), 2: (0, 5, 12)}
_LEGACY_TO, _LEGACY_V, _LEGACY_FIELDS = 3, 6, 9


@dataclass(frozen=True)
class Destination:
    """The chain of a transaction, and the address that it calls, in lower case."""

    chain_id: int
    to: str


def destination(raw: str) -> Destination | None:
    """The destination of a transaction in hex; None if it is malformed, of an unknown type, or not of one chain."""
    content = bytes.fromhex(raw[2:])
    if not content:
        return None
    try:
        if content[0] in _TYPED:
            chain_at, to_at, fields = _TYPED[content[0]]
            items = _flat(rlp.decode(content[1:]), fields)
            chain_id = int.from_bytes(items[chain_at], "big")
        else:
            items, to_at = _flat(rlp.decode(content), _LEGACY_FIELDS), _LEGACY_TO
            chain_id = (int.from_bytes(items[_LEGACY_V], "big") - 35) // 2
        to = items[to_at]
    except (rlp.exceptions.RLPException, ValueError, TypeError, RecursionError):
        return None
    return Destination(chain_id, f"0x{to.hex()}") if isinstance(to, bytes) and len(to) == 20 else None


def _flat(items: Any, fields: int) -> Any:
    if not isinstance(items, (list, tuple)) or len(items) != fields:
        raise ValueError
    return items
