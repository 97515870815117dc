"""The grid's contracts: their calls, results and events.

`abi_words` encodes calls of plain words, as most reads are. eth-abi, the base of web3's own codec, encodes the others:
web3's encoding refuses addresses without checksum and explains a wrong argument with a page of text. `abi_decoding`
decodes results and events, with functions that are made once.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils.abi import collapse_if_tuple, event_abi_to_log_topic, function_abi_to_4byte_selector

from deepgrid.chain.node.abi_decoding import WrongData, decoder
from deepgrid.chain.node.abi_words import encode_words
from deepgrid.errors import ChainError, InputError


@dataclass(frozen=True, slots=True)
class Event:
    """One decoded log: `args` by name, and its place on chain."""

    name: str
    args: dict[str, Any]
    block: int
    block_hash: str
    tx_hash: str
    log_index: int

    @property
    def job_id(self) -> int:
        """Id of the job that the event is about; 0 for an event without a job."""
        return int.from_bytes(self.args.get("jobId", b""), "big")


def selector(item: dict[str, Any]) -> bytes:
    """Return the four bytes that identify a function or an error."""
    return bytes(function_abi_to_4byte_selector(item))  # type: ignore[arg-type]


def decode_fields(fields: Sequence[dict[str, Any]], data: bytes) -> list[Any]:
    """Return the values of ABI-encoded `fields`. Raises ChainError if `data` does not match them."""
    return _decode_data(decoder(fields), data)


def _decode_data(decode: Callable[[bytes], list[Any]], data: bytes) -> list[Any]:
    try:
        return decode(data)
    except WrongData:
        raise foreign() from None


def decode_named(fields: Sequence[dict[str, Any]], data: bytes) -> dict[str, Any]:
    """Return the same values by the names of the fields."""
    return {field["name"]: value for field, value in zip(fields, decode_fields(fields, data), strict=True)}


def foreign() -> ChainError:
    """Return the error for data that this grid's contracts would not return."""
    what = "The chain returned data that does not come from this grid's contracts."
    return ChainError(what, transient=False, next_step="Check the addresses in the address book.")


class _EventDecoder:
    """The arguments of one kind of event. The indexed ones, of one word each, are topics; the others are the data."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.name: str = item["name"]
        indexed = [field for field in item["inputs"] if field["indexed"]]
        others = [field for field in item["inputs"] if not field["indexed"]]
        self._names = [field["name"] for field in (*indexed, *others)]
        self._indexed, self._topics, self._data = len(indexed), decoder(indexed), decoder(others)

    def arguments(self, log: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a log by name. Raises ChainError if they do not belong to this event."""
        topics = [bytes.fromhex(topic[2:]) for topic in log["topics"][1:]]
        if len(topics) != self._indexed:
            raise foreign()
        values = _decode_data(self._topics, b"".join(topics)) + _decode_data(self._data, bytes.fromhex(log["data"][2:]))
        return dict(zip(self._names, values, strict=True))


CONTRACTS = ("Credit", "ProviderManager", "MetaScheduler")


class Interface:
    """The public surface of one contract."""

    def __init__(self, name: str, abi: list[dict[str, Any]], bytecode: str) -> None:
        self.name = name
        self.bytecode = bytecode.removeprefix("0x")
        self._functions = {item["name"]: item for item in abi if item["type"] == "function"}
        self._selectors = {name: f"0x{selector(item).hex()}" for name, item in self._functions.items()}
        self._results = {name: decoder(item["outputs"]) for name, item in self._functions.items()}
        events = [item for item in abi if item["type"] == "event"]
        self._events = {f"0x{event_abi_to_log_topic(item).hex()}": _EventDecoder(item) for item in events}  # type: ignore[arg-type]
        constructors = [item["inputs"] for item in abi if item["type"] == "constructor"]
        self._constructor_inputs: list[dict[str, Any]] = constructors[0] if constructors else []
        self.errors = {selector(item): item for item in abi if item["type"] == "error"}

    def encode(self, function: str, *args: Any) -> str:
        """Call data of `function(*args)`; structs as tuples in field order."""
        return self._selectors[function] + self._encode_args(function, self._functions[function]["inputs"], args)

    def creation(self, *args: Any) -> str:
        """Return data of the transaction that deploys this contract with constructor arguments `args`."""
        return f"0x{self.bytecode}{self._encode_args('constructor', self._constructor_inputs, args)}"

    def decode(self, function: str, data: bytes) -> Any:
        """Return the result of `function`: one value, or a tuple if it returns several.

        Raises ChainError if `data` is not such a result: no contract, or another one, is at the address.
        """
        values = _decode_data(self._results[function], data)
        return values[0] if len(values) == 1 else tuple(values)

    def arguments(self, data: bytes) -> tuple[str, dict[str, Any]]:
        """Return the function and the arguments by name of call data.

        Raises ChainError if it is not a call of this contract.
        """
        for function, known in self._selectors.items():
            if known == f"0x{data[:4].hex()}":
                return function, decode_named(self._functions[function]["inputs"], data[4:])
        raise foreign()

    def topic(self, event: str) -> str:
        """First topic of the logs of `event`."""
        return next(topic for topic, known in self._events.items() if known.name == event)

    def topics(self) -> list[str]:
        """First topics of all events of this contract."""
        return list(self._events)

    def event(self, log: dict[str, Any]) -> Event | None:
        """Return the decoded event of a raw log, or None if this contract has no such event.

        Raises ChainError for a log of another contract with the same topic and other fields.
        """
        known = self._events.get(log["topics"][0]) if log["topics"] else None
        if known is None:
            return None
        return Event(
            name=known.name, args=known.arguments(log), block=int(log["blockNumber"], 16),
            block_hash=log["blockHash"], tx_hash=log["transactionHash"], log_index=int(log["logIndex"], 16),
        )  # fmt: skip

    def _encode_args(self, function: str, fields: Sequence[dict[str, Any]], args: Sequence[Any]) -> str:
        if (words := encode_words([field["type"] for field in fields], args)) is not None:
            return words.hex()
        # eth-abi takes a fifth of the CPU time in which a verb such as `dps job get` starts
        from eth_abi.codec import ABICodec
        from eth_abi.exceptions import EncodingError
        from eth_abi.registry import registry

        try:
            return ABICodec(registry).encode([collapse_if_tuple(field) for field in fields], args).hex()
        except (EncodingError, TypeError, ValueError) as error:
            raise InputError(f"An argument of {self.name}.{function} is out of range: {error}.") from None


@functools.cache
def interface(name: str) -> Interface:
    """Return the interface of one of CONTRACTS."""
    text = (importlib.resources.files("deepgrid.chain") / "compiled" / f"{name}.json").read_text()
    artifact = json.loads(text)
    return Interface(name, artifact["abi"], artifact["bytecode"])
