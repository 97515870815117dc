"""Values that follow from an idempotency key: salts of definitions, and names that do not reveal the key's text."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import InputError

LONGEST_KEY = 1000
FOLDER_SUFFIX = ".idempotency"

_PURPOSE = b"idempotency keys v1"


def random_key() -> str:
    """A key that is used once."""
    return secrets.token_hex(16)


class IdempotencyKey:
    """A key of one wallet, for one use (`submit` or `map`) on one grid.

    Attributes:
        id: 64 hex digits that stand for the key in files. They do not reveal its text.
    """

    def __init__(self, wallet: Wallet, book: AddressBook, use: str, text: str) -> None:
        """Raises InputError for a text that is empty or longer than 1,000 characters."""
        if not isinstance(text, str) or not text or len(text) > LONGEST_KEY:
            raise InputError(f"An idempotency key is a text of 1 to {LONGEST_KEY} characters.")
        self._secret = wallet.secret_for(_PURPOSE)
        self._bound = [book.chain_id, book.meta_scheduler.lower(), use, text]
        self._key_file = wallet.key_file
        self.id = self._hmac("id").hex()

    def salt(self, occurrence: int = 0, attempt: int = 0) -> bytes:
        """Salt of a definition's hash: for the n-th equal definition under this key, and the n-th retry of it."""
        return self._hmac("salt", occurrence, attempt)

    def fingerprint(self, content: bytes) -> str:
        """64 hex digits that stand for a definition in files. They do not reveal it."""
        return self._hmac("fingerprint", hashlib.sha256(content).hexdigest()).hex()

    @property
    def folder(self) -> Path | None:
        """Where the files about the wallet's keys are; None for a wallet without a key file."""
        return None if self._key_file is None else self._key_file.with_name(self._key_file.name + FOLDER_SUFFIX)

    def _hmac(self, *parts: str | int) -> bytes:
        message = json.dumps([*self._bound, *parts]).encode(errors="surrogatepass")
        return hmac.digest(self._secret, message, hashlib.sha256)

    def __repr__(self) -> str:
        return f"IdempotencyKey({self.id[:8]})"
