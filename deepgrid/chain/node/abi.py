"""ABI-encoded values.

Structs become dicts by field name, addresses have their checksum. A string that is not UTF-8 gets replacement
characters: anyone may write strings on chain, and one bad string must not make a page of jobs unreadable for all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.exceptions import DecodingError
from eth_abi.registry import registry as default_registry
from eth_utils.abi import collapse_if_tuple, function_abi_to_4byte_selector
from eth_utils.address import to_checksum_address

from deepgrid.errors import ChainError


def _lenient_codec() -> ABICodec:
    """eth-abi's codec, except that it replaces invalid UTF-8."""
    registry = default_registry.copy()  # type: ignore[no-untyped-call]
    registry.unregister_decoder("string")
    registry.register_decoder("string", StringDecoder(handle_string_errors="replace"))  # type: ignore[no-untyped-call]
    return ABICodec(registry)


CODEC = _lenient_codec()


@dataclass(frozen=True, slots=True)
class Event:
    """One decoded log: `args` by name, and its place on chain."""

    name: str
    args: dict[str, Any]
    block: int
    block_hash: str
    tx_hash: str
    log_index: int


def selector(item: dict[str, Any]) -> bytes:
    """The four bytes that identify a function or an error."""
    return bytes(function_abi_to_4byte_selector(item))  # type: ignore[arg-type]


def decode_fields(fields: Sequence[dict[str, Any]], data: bytes) -> list[Any]:
    """Values of ABI-encoded `fields`. Raises ChainError if `data` does not match them."""
    try:
        values = CODEC.decode([collapse_if_tuple(field) for field in fields], data)
    except (DecodingError, OverflowError):  # the latter for a length beyond all memory
        raise foreign() from None
    return [_named(field, value) for field, value in zip(fields, values, strict=True)]


def foreign() -> ChainError:
    """The error for data that this grid's contracts would not return."""
    return ChainError(
        "The chain returned data that does not come from this grid's contracts.",
        transient=False, next_step="Check the addresses in the address book.",
    )  # fmt: skip


def _named(field: dict[str, Any], value: Any) -> Any:
    """Tuples as dicts by field name, all the way down."""
    kind: str = field["type"]
    if kind.endswith("]"):
        item = {**field, "type": kind[: kind.rindex("[")]}
        return [_named(item, element) for element in value]
    if kind == "tuple":
        return {part["name"]: _named(part, element) for part, element in zip(field["components"], value, strict=True)}
    return _checksummed(value) if kind == "address" else value


@functools.lru_cache(maxsize=4096)  # the same few addresses repeat, and each checksum takes a hash
def _checksummed(address: str) -> str:
    return str(to_checksum_address(address))
