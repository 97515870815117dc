"""Calls, results and events of the grid's contracts, coded by their committed ABI.

Structs come back as dicts by field name, addresses with checksum. A string that is not UTF-8 is
read with replacement characters: anybody may write strings on chain, and one bad one must not
make everybody's pages of jobs unreadable.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.encoding import TextStringEncoder
from eth_abi.exceptions import DecodingError, EncodingError
from eth_abi.registry import BaseEquals
from eth_abi.registry import registry as default_registry
from eth_utils.abi import collapse_if_tuple, event_abi_to_log_topic, function_abi_to_4byte_selector
from eth_utils.address import to_checksum_address

from deepgrid.errors import ChainError, InputError

CONTRACTS = ("Credit", "ProviderManager", "MetaScheduler")


class _LenientString(StringDecoder):
    """Strings of strangers: bad UTF-8 is replaced, not raised."""

    def __init__(self) -> None:
        super().__init__(handle_string_errors="replace")  # type: ignore[no-untyped-call]


def _lenient_codec() -> ABICodec:
    registry = default_registry.copy()  # type: ignore[no-untyped-call]
    registry.unregister("string")
    is_string = BaseEquals("string", with_sub=False)  # type: ignore[no-untyped-call]
    registry.register(is_string, TextStringEncoder, _LenientString, label="string")
    return ABICodec(registry)


CODEC = _lenient_codec()


@dataclass(frozen=True, slots=True)
class Event:
    """One decoded log: `args` by name, and where it stands on chain."""

    name: str
    args: dict[str, Any]
    block: int
    block_hash: str
    tx_hash: str
    log_index: int


class Interface:
    """The public surface of one contract."""

    def __init__(self, name: str, abi: list[dict[str, Any]], bytecode: str) -> None:
        self.name = name
        self.bytecode = bytecode.removeprefix("0x")
        self._functions = {item["name"]: item for item in abi if item["type"] == "function"}
        self._events = {_topic(item): item for item in abi if item["type"] == "event"}
        constructors = [item["inputs"] for item in abi if item["type"] == "constructor"]
        self._constructor_inputs: list[dict[str, Any]] = constructors[0] if constructors else []
        self.errors = {selector(item): item for item in abi if item["type"] == "error"}

    def encode(self, function: str, *args: Any) -> str:
        """Call data of `function(*args)`; structs as tuples in field order."""
        item = self._functions[function]
        return f"0x{selector(item).hex()}{self._encode_args(function, item['inputs'], args)}"

    def creation(self, *args: Any) -> str:
        """Data of the transaction that deploys this contract with constructor arguments `args`."""
        return f"0x{self.bytecode}{self._encode_args('constructor', self._constructor_inputs, args)}"

    def decode(self, function: str, data: bytes) -> Any:
        """Result of `function`: one value, or a tuple when it returns several.

        Raises ChainError when `data` is no such result: no contract, or another one, at the address.
        """
        values = decode_fields(self._functions[function]["outputs"], data)
        return values[0] if len(values) == 1 else tuple(values)

    def topic(self, event: str) -> str:
        """First topic of the logs of `event`."""
        return next(topic for topic, item in self._events.items() if item["name"] == event)

    def topics(self) -> list[str]:
        """First topics of all events of this contract."""
        return list(self._events)

    def event(self, log: dict[str, Any]) -> Event | None:
        """A raw log decoded, or None when it is not of this contract's events."""
        item = self._events.get(log["topics"][0]) if log["topics"] else None
        if item is None:
            return None
        plain = [field for field in item["inputs"] if not field["indexed"]]
        indexed = [field for field in item["inputs"] if field["indexed"]]
        values = decode_fields(plain, bytes.fromhex(log["data"][2:]))
        args = {field["name"]: value for field, value in zip(plain, values, strict=True)}
        for field, topic in zip(indexed, log["topics"][1:], strict=True):
            args[field["name"]] = decode_fields([field], bytes.fromhex(topic[2:]))[0]
        return Event(
            name=item["name"], args=args, block=int(log["blockNumber"], 16), block_hash=log["blockHash"],
            tx_hash=log["transactionHash"], log_index=int(log["logIndex"], 16),
        )  # fmt: skip

    def _encode_args(self, function: str, fields: Sequence[dict[str, Any]], args: Sequence[Any]) -> str:
        try:
            return CODEC.encode([collapse_if_tuple(field) for field in fields], args).hex()
        except (EncodingError, TypeError, ValueError) as error:
            raise InputError(f"An argument of {self.name}.{function} is out of range: {error}.") from None


@functools.cache
def interface(name: str) -> Interface:
    """The interface of one of CONTRACTS."""
    text = (importlib.resources.files("contracts") / "abi" / f"{name}.json").read_text()
    artifact = json.loads(text)
    return Interface(name, artifact["abi"], artifact["bytecode"])


def selector(item: dict[str, Any]) -> bytes:
    """The four bytes by which a function or an error is known."""
    return bytes(function_abi_to_4byte_selector(item))  # type: ignore[arg-type]


def decode_fields(fields: Sequence[dict[str, Any]], data: bytes) -> list[Any]:
    """Values of ABI-coded `fields`. Raises ChainError when `data` does not hold them."""
    try:
        values = CODEC.decode([collapse_if_tuple(field) for field in fields], data)
    except DecodingError:
        raise ChainError(
            "The chain answered something that is not from this grid's contracts.",
            transient=False, next_step="Check the addresses in the address book.",
        ) from None  # fmt: skip
    return [_named(field, value) for field, value in zip(fields, values, strict=True)]


def _named(field: dict[str, Any], value: Any) -> Any:
    """Tuples as dicts by field name, all the way down."""
    kind: str = field["type"]
    if kind.endswith("]"):
        item = {**field, "type": kind[: kind.rindex("[")]}
        return [_named(item, element) for element in value]
    if kind == "tuple":
        return {part["name"]: _named(part, element) for part, element in zip(field["components"], value, strict=True)}
    return to_checksum_address(value) if kind == "address" else value


def _topic(item: dict[str, Any]) -> str:
    return f"0x{bytes(event_abi_to_log_topic(item)).hex()}"  # type: ignore[arg-type]
