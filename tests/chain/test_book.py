"""The address book reports its faults. The book of another chain never replaces it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError

A = "0x5FbDB2315678afecb367f032d93F642f64180aa3"


def _book(**changes: object) -> AddressBook:
    fields: dict[str, object] = {
        "chain_id": 31337, "rpc_url": "http://127.0.0.1:8545", "meta_scheduler": A, "credit": A.lower(),
        "provider_manager": A, "definitions_url": "http://127.0.0.1:9/", "logs_url": "http://127.0.0.1:9",
    }  # fmt: skip
    return AddressBook.model_validate(fields | changes)


def test_book_is_found_by_argument_then_variable_then_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DEEPGRID_BOOK", raising=False)
    with pytest.raises(ConfigurationError, match="run up"):
        AddressBook.load()
    home = _book(first_block=1)
    assert home.save() == tmp_path / ".dps" / "grid.json"
    assert AddressBook.load() == home
    other = _book(first_block=2)
    other.save(tmp_path / "other.json")
    monkeypatch.setenv("DEEPGRID_BOOK", str(tmp_path / "other.json"))
    assert AddressBook.load() == other
    assert AddressBook.load(tmp_path / ".dps" / "grid.json") == home


def test_addresses_get_their_checksum_and_urls_lose_their_slash() -> None:
    book = _book()
    assert (book.credit, book.definitions_url) == (A, "http://127.0.0.1:9")


def test_book_of_another_chain_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    _book().save(path)
    _book(first_block=5).save(path)
    assert AddressBook.load(path).first_block == 5
    with pytest.raises(ConfigurationError, match="chain 31337, not of 1"):
        _book(chain_id=1).save(path)
    assert AddressBook.load(path).chain_id == 31337
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.json"]


def test_other_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    path.write_text("my notes")
    with pytest.raises(ConfigurationError, match="not an address book"):
        _book().save(path)
    assert path.read_text() == "my notes"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"credit": "0x12"}, "credit: is not an address"),
        ({"credit": A.replace("B", "b", 1)}, "credit: has a wrong checksum"),
        ({"rpc_url": "127.0.0.1"}, "rpc_url: must start with http"),
        ({"chain_id": 0}, "chain_id: "),
        ({"surprise": 1}, "surprise: "),
    ],
)
def test_bad_book_names_the_field(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(_book().model_dump() | change))
    with pytest.raises(ConfigurationError, match=complaint):
        AddressBook.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_broken_book(tmp_path: Path, text: str) -> None:
    path = tmp_path / "grid.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not valid"):
        AddressBook.load(path)


def test_authorities_are_certificates_and_a_book_without_them_does_not_name_them(tmp_path: Path) -> None:
    """A release without the field refuses a book that has it."""
    assert "authorities" not in _book().save(tmp_path / "plain.json").read_text()
    with pytest.raises(ValidationError, match="is not a certificate in PEM form"):
        _book(authorities="no certificate")
