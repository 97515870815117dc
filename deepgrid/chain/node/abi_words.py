"""Encodes the arguments of simple calls: words, and lists of ids. Everything else is left to eth-abi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepgrid.chain.node.abi_decoding import WORD, checksum_address

ADDRESS_CHARACTERS = 42


def encode_words(kinds: Sequence[str], values: Sequence[Any]) -> bytes | None:
    """Return the encoded arguments; None if a type or a value is not as simple, or not surely right."""
    if len(kinds) != len(values):
        return None
    heads, tails, size = list[bytes](), b"", WORD * len(kinds)
    for kind, value in zip(kinds, values, strict=True):
        if kind == "bytes32[]" and isinstance(value, list | tuple):
            items = [_word("bytes32", one) for one in value]
            heads.append(_number(size + len(tails)))
            tails += _number(len(items)) + b"".join(one for one in items if one)
            if None in items:
                return None
        elif (word := _word(kind, value)) is not None:
            heads.append(word)
        else:
            return None
    return b"".join(heads) + tails


def _word(kind: str, value: Any) -> bytes | None:
    if kind == "bytes32" and isinstance(value, bytes) and len(value) == WORD:
        return value
    if kind.startswith("uint") and kind[4:].isdigit() and type(value) is int and 0 <= value < 1 << int(kind[4:]):
        return _number(value)
    if kind == "bool" and isinstance(value, bool):
        return _number(value)
    if kind == "address" and isinstance(value, str) and len(value) == ADDRESS_CHARACTERS:
        return _address(value)
    return None


def _address(value: str) -> bytes | None:
    """Return an address of small letters, or with the right checksum."""
    try:
        coded = bytes.fromhex(value.removeprefix("0x"))
    except ValueError:
        return None
    is_right = len(coded) == 20 and value in (f"0x{coded.hex()}", checksum_address(coded))
    return coded.rjust(WORD, b"\0") if is_right else None


def _number(value: int) -> bytes:
    return value.to_bytes(WORD, "big")
