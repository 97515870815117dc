"""The grid's contracts: events by web3's contract codec, calls and results by eth-abi, on which that is built.

web3's coding of arguments refuses addresses without checksum and explains a wrong argument with a page
of text; its decoding of results takes 8 times as long (3 ms a job) and holds everything else up meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from eth_abi.exceptions import DecodingError, EncodingError
from eth_utils.abi import collapse_if_tuple
from web3 import AsyncBaseProvider, AsyncWeb3
from web3.exceptions import Web3Exception
from web3.types import LogReceipt

from deepgrid.chain.abi import CODEC, Event, decode_fields, foreign, selector
from deepgrid.errors import InputError

_offline = AsyncWeb3(AsyncBaseProvider())
_offline.codec = CODEC


class Interface:
    """The public surface of one contract."""

    def __init__(self, name: str, abi: list[dict[str, Any]], bytecode: str) -> None:
        self.name = name
        self.bytecode = bytecode.removeprefix("0x")
        self._functions = {item["name"]: item for item in abi if item["type"] == "function"}
        self._events = {str(event.topic): event for event in _offline.eth.contract(abi=abi).all_events()}
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
        return next(topic for topic, known in self._events.items() if known.event_name == event)

    def topics(self) -> list[str]:
        """First topics of all events of this contract."""
        return list(self._events)

    def event(self, log: dict[str, Any]) -> Event | None:
        """A raw log decoded, or None when it is not of this contract's events.

        Raises ChainError for a log of another contract that only looks like one of these.
        """
        known = self._events.get(log["topics"][0]) if log["topics"] else None
        if known is None:
            return None
        try:
            decoded = known.process_log(cast(LogReceipt, log))
        except (Web3Exception, DecodingError):
            raise foreign() from None
        return Event(
            name=decoded["event"], args=decoded["args"], block=int(log["blockNumber"], 16),
            block_hash=log["blockHash"], tx_hash=log["transactionHash"], log_index=int(log["logIndex"], 16),
        )  # fmt: skip

    def _encode_args(self, function: str, fields: Sequence[dict[str, Any]], args: Sequence[Any]) -> str:
        try:
            return CODEC.encode([collapse_if_tuple(field) for field in fields], args).hex()
        except (EncodingError, TypeError, ValueError) as error:
            raise InputError(f"An argument of {self.name}.{function} is out of range: {error}.") from None
