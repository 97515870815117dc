"""Our decoding of contract data agrees with eth-abi: on what contracts return, and on damaged bytes."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import pytest
from eth_abi.abi import decode as reference
from eth_abi.abi import encode
from eth_abi.exceptions import DecodingError
from eth_utils.abi import collapse_if_tuple
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.chain.node.abi_decoding import Field, WrongData, decoder
from deepgrid.chain.node.abi_words import encode_words
from deepgrid.chain.node.contract import CONTRACTS


def _shapes() -> list[list[Field]]:
    """Return the fields of all results, arguments, events and errors of the contracts, each shape once."""
    found: dict[str, list[Field]] = {}
    compiled = importlib.resources.files("deepgrid.chain") / "compiled"
    for item in [one for name in CONTRACTS for one in json.loads((compiled / f"{name}.json").read_text())["abi"]]:
        for fields in (item.get("inputs", []), item.get("outputs", [])):
            found[json.dumps([collapse_if_tuple(field) for field in fields])] = fields
    return list(found.values())


SHAPES = _shapes()


def _value(field: Field) -> st.SearchStrategy[Any]:
    kind: str = field["type"]
    if kind.endswith("[]"):
        return st.lists(_value({**field, "type": kind[:-2]}), max_size=3)
    if kind == "tuple":
        return st.tuples(*map(_value, field["components"]))
    if kind.startswith("uint"):
        return st.integers(0, 2 ** int(kind[4:]) - 1)
    if kind.startswith("int"):
        return st.integers(-(2 ** (int(kind[3:]) - 1)), 2 ** (int(kind[3:]) - 1) - 1)
    if kind in ("bytes", "string"):
        return st.binary(max_size=70) if kind == "bytes" else st.text(max_size=40)
    if kind.startswith("bytes"):
        return st.binary(min_size=int(kind[5:]), max_size=int(kind[5:]))
    return st.booleans() if kind == "bool" else st.binary(min_size=20, max_size=20).map(to_checksum_address)


def _named(field: Field, value: Any) -> Any:
    kind: str = field["type"]
    if kind.endswith("[]"):
        return [_named({**field, "type": kind[:-2]}, one) for one in value]
    if kind == "tuple":
        return {part["name"]: _named(part, one) for part, one in zip(field["components"], value, strict=True)}
    return to_checksum_address(value) if kind == "address" else value


def _expected(fields: list[Field], data: bytes) -> list[Any] | None:
    """Return the values by eth-abi; None if it refuses the data."""
    try:
        values = reference([collapse_if_tuple(field) for field in fields], data)
    except (DecodingError, OverflowError):
        return None
    return [_named(field, value) for field, value in zip(fields, values, strict=True)]


def _found(fields: list[Field], data: bytes) -> list[Any] | None:
    try:
        return decoder(fields)(data)
    except WrongData:
        return None


@given(st.data())
def test_every_type_of_the_contracts_decodes_as_in_eth_abi(data: st.DataObject) -> None:
    fields = data.draw(st.sampled_from(SHAPES))
    values = data.draw(st.tuples(*map(_value, fields)))
    coded = encode([collapse_if_tuple(field) for field in fields], values)
    expected = _expected(fields, coded)
    assert expected is not None
    assert _found(fields, coded) == expected


@given(st.data())
def test_damaged_data_is_refused_or_read_as_in_eth_abi(data: st.DataObject) -> None:
    """Bytes are changed and cut. Only text that is not UTF-8 is read here and refused there."""
    fields = data.draw(st.sampled_from([one for one in SHAPES if one]))
    coded = bytearray(
        encode([collapse_if_tuple(field) for field in fields], data.draw(st.tuples(*map(_value, fields))))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        coded[data.draw(st.integers(0, len(coded) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(coded)), st.integers(0, len(coded))))
    damaged = bytes(coded[:cut])
    try:
        expected = _expected(fields, damaged)
    except UnicodeDecodeError:
        return
    assert _found(fields, damaged) == expected


@pytest.mark.parametrize("length", [2**20, 2**62, 2**255])
def test_an_array_of_impossible_length_costs_nothing(length: int) -> None:
    fields = [{"type": "uint256[]", "name": "ids"}]
    assert _found(fields, encode(["uint256", "uint256"], [32, length])) is None


@given(st.data())
def test_simple_arguments_are_encoded_as_by_eth_abi(data: st.DataObject) -> None:
    fields = data.draw(st.sampled_from(SHAPES))
    values = data.draw(st.tuples(*map(_value, fields)))
    kinds = [collapse_if_tuple(field) for field in fields]
    assert encode_words([field["type"] for field in fields], values) in (None, encode(kinds, values))


ADDRESS = to_checksum_address("0x" + "ab" * 20)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("address", ADDRESS[:-1] + ADDRESS[-1].swapcase()),
        ("address", ADDRESS[:-1]),
        ("address", "0x" + "zz" * 20),
        ("address", None),
        ("uint64", 2**64),
        ("uint64", -1),
        ("uint64", True),
        ("uint64", 1.0),
        ("bytes32", b"short"),
        ("bytes32[]", [bytes(32), b"short"]),
        ("bytes32[]", "text"),
        ("bool", 1),
        ("string", "text"),
    ],
)
def test_what_is_not_surely_right_is_left_to_eth_abi(kind: str, value: object) -> None:
    assert encode_words([kind], [value]) is None
    assert encode_words([kind], []) is None
