"""Decodes what the grid's contracts return, with one small function per field that is made once per type.

eth-abi reads every word through a stream of its own and takes 0.2 to 2 ms per job or event. In the operator, the books
and the customers' tools that was most of the CPU time. This is as strict as eth-abi (`tests/chain/test_abi_decoding.py`
compares both): padding must be empty, and every value must lie inside the data.

Structs become dicts by field name, addresses have their checksum. A string that is not UTF-8 gets replacement
characters: anyone may write strings on chain, and one bad string must not make a page of jobs unreadable for all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

WORD = 32
Field = dict[str, Any]


class WrongData(Exception):
    """The bytes are not an encoding of the fields."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How to read a type: from the data and the place of the value. `size` is the bytes of its head."""

    read: Callable[[bytes, int], Any]
    size: int = WORD
    is_dynamic: bool = False


def decoder(fields: Sequence[Field]) -> Callable[[bytes], list[Any]]:
    """Return a function that returns the values of ABI-encoded `fields`. It raises WrongData."""
    read = _tuple([{**field, "name": number} for number, field in enumerate(fields)]).read  # names may repeat

    def decode(data: bytes) -> list[Any]:
        return list(read(data, 0).values())

    return decode


def _kind(field: Field) -> _Kind:
    kind: str = field["type"]
    if kind.endswith("[]"):
        return _array(_kind({**field, "type": kind[:-2]}))
    if kind == "tuple":
        return _tuple(field["components"])
    if kind in ("bytes", "string"):
        return _Kind(_text if kind == "string" else _bytes, is_dynamic=True)
    if kind.startswith("uint"):
        return _Kind(_unsigned_reader(int(kind[4:])))
    if kind.startswith("int"):
        return _Kind(_signed_reader(int(kind[3:])))
    if kind.startswith("bytes"):
        return _Kind(_fixed_bytes(int(kind[5:])))
    return _Kind({"bool": _bool, "address": _address}[kind])


# -- words -----------------------------------------------------------------------------------


def _word(data: bytes, at: int) -> int:
    if at + WORD > len(data):
        raise WrongData
    return int.from_bytes(data[at : at + WORD], "big")


def _unsigned_reader(bits: int) -> Callable[[bytes, int], int]:
    def read(data: bytes, at: int) -> int:
        value = _word(data, at)
        if value >> bits:
            raise WrongData
        return value

    return read


def _signed_reader(bits: int) -> Callable[[bytes, int], int]:
    def read(data: bytes, at: int) -> int:
        value = _word(data, at)
        value -= (value >> 255) << 256
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise WrongData
        return value

    return read


def _fixed_bytes(size: int) -> Callable[[bytes, int], bytes]:
    def read(data: bytes, at: int) -> bytes:
        found = data[at : at + WORD]
        if len(found) != WORD or any(found[size:]):
            raise WrongData
        return found[:size]

    return read


def _bool(data: bytes, at: int) -> bool:
    value = _word(data, at)
    if value > 1:
        raise WrongData
    return bool(value)


def _address(data: bytes, at: int) -> str:
    return checksum_address(_fixed_address(data, at))


def _fixed_address(data: bytes, at: int) -> bytes:
    value = _word(data, at)
    if value >> 160:
        raise WrongData
    return data[at + 12 : at + WORD]


@functools.lru_cache(maxsize=4096)  # the same few addresses repeat, and each checksum takes a hash
def checksum_address(address: bytes) -> str:
    """Return the checksum form of an address of 20 bytes."""
    return str(to_checksum_address(address))


# -- values of any length --------------------------------------------------------------------


def _bytes(data: bytes, at: int) -> bytes:
    size = _word(data, at)
    begin, end = at + WORD, at + WORD + size
    padded_end = begin + -(-size // WORD) * WORD
    if padded_end > len(data) or any(data[end:padded_end]):
        raise WrongData
    return data[begin:end]


def _text(data: bytes, at: int) -> str:
    return _bytes(data, at).decode(errors="replace")


def _array(item: _Kind) -> _Kind:
    read_item, size, is_dynamic = item.read, item.size, item.is_dynamic

    def read(data: bytes, at: int) -> list[Any]:
        count, first = _word(data, at), at + WORD
        heads_end = first + count * size
        if heads_end > len(data):
            raise WrongData
        places = range(first, heads_end, size)
        if is_dynamic:
            return [read_item(data, _tail(data, first, place, heads_end)) for place in places]
        return [read_item(data, place) for place in places]

    return _Kind(read, is_dynamic=True)


def _tuple(fields: Sequence[Field]) -> _Kind:
    parts, size = [], 0
    for field in fields:
        kind = _kind(field)
        parts.append((field["name"], kind.read, size, kind.is_dynamic))
        size += kind.size
    is_dynamic = any(part[3] for part in parts)

    def read(data: bytes, at: int) -> dict[str, Any]:
        return {
            name: read_part(data, _tail(data, at, at + place, at + size) if is_far else at + place)
            for name, read_part, place, is_far in parts
        }

    return _Kind(read, WORD if is_dynamic else size, is_dynamic)


def _tail(data: bytes, base: int, place: int, heads_end: int) -> int:
    """Return where a value is whose head at `place` counts from `base`. It lies behind all heads."""
    at = base + _word(data, place)
    if at < heads_end or at >= len(data):
        raise WrongData
    return at
