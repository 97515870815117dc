"""Idempotency keys: the same key with the same definition finds the same job, from any machine with that wallet.

The salt of the definition's hash is an HMAC of the key's text, and the hash is on chain. So the chain itself records
all requests. Files next to the key file only keep processes of one machine from requesting at the same time, and show
when a key is used again with another definition. They hold no definition and no key text.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import InputError
from deepgrid.files.file_lock import file_lock, open_private
from deepgrid.files.private_files import replace_file

LONGEST_KEY = 1000
FOLDER_SUFFIX = ".idempotency"
MOST_KEYS = 5000  # in the journal; only the newest are kept

_PURPOSE = b"idempotency keys v1"


def random_key() -> str:
    """Return a key that is used once."""
    return secrets.token_hex(16)


class IdempotencyKey:
    """A key of one wallet, for one use (`submit` or `map`) on one grid.

    Attributes:
        id: 64 hex digits that represent the key in files. They do not reveal its text.
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
        """Return the salt of a definition's hash, for the n-th equal definition under this key and its n-th retry."""
        return self._hmac("salt", occurrence, attempt)

    def fingerprint(self, content: bytes) -> str:
        """64 hex digits that represent a definition in files. They do not reveal it."""
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


@asynccontextmanager
async def key_lock(folder: Path | None, key_id: str, wait_s: float | None) -> AsyncIterator[None]:
    """Let one call at a time decide whether to request jobs under a key. Without a folder it does nothing.

    Raises GridError (transient) if another call holds it for longer than `wait_s` seconds. None means no limit.
    """
    if folder is None:
        yield
        return
    async with file_lock(folder / f"{key_id}.lock", "Another call with this idempotency key", wait_s):
        yield


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a key: the fingerprint of a definition, and the hash of the first job to be requested."""

    fingerprint: str
    first_hash: str


class Journal:
    """The definitions of the keys that this machine used, in `folder`. Without a folder it knows nothing.

    A line of JSON per use is appended in one write. The last line about a key counts. A line that was cut off is
    ignored. A lost journal loses warnings about keys that are used twice, and nothing else.
    """

    def __init__(self, folder: Path | None, most_keys: int = MOST_KEYS) -> None:
        self._file = None if folder is None else folder / "journal"
        self._most_keys = most_keys

    def find(self, key_id: str) -> Use | None:
        """Return the use of the key; None if it was not used on this machine, or long ago."""
        if self._file is None or not self._file.exists():
            return None
        return _uses(self._file.read_bytes()).get(key_id)

    def record(self, key_id: str, use: Use) -> None:
        """Record what the key is used for."""
        if self._file is None:
            return
        with _file_lock(self._file.with_suffix(".lock")):
            with open(open_private(self._file), "a+b", buffering=0) as journal:
                journal.seek(0)
                content = journal.read()
                cut_off = b"\n" if content and not content.endswith(b"\n") else b""
                journal.write(cut_off + _line(key_id, use))
                os.fsync(journal)
            if content.count(b"\n") >= 2 * self._most_keys:
                self._shorten(self._file)

    def _shorten(self, file: Path) -> None:
        newest = list(_uses(file.read_bytes()).items())[-self._most_keys :]
        replace_file(file, b"".join(_line(key_id, use) for key_id, use in newest))


def _line(key_id: str, use: Use) -> bytes:
    return json.dumps({"key": key_id, "definition": use.fingerprint, "first": use.first_hash}).encode() + b"\n"


def _uses(content: bytes) -> dict[str, Use]:
    """Return the last use of each key, the newest key last."""
    found: dict[str, Use] = {}
    for line in content.splitlines():
        try:
            entry = json.loads(line)
            key_id, use = entry["key"], Use(entry["definition"], entry["first"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off, or damaged
        found.pop(key_id, None)
        found[key_id] = use
    return found


@contextmanager
def _file_lock(file: Path) -> Iterator[None]:
    descriptor = open_private(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # for the time of one write
        yield
    finally:
        os.close(descriptor)


class RequestedJobs:
    """An index of all jobs of a customer. It is read once, and then only new entries are read.

    The hash of a job never changes. If a reorganisation of the chain has replaced the newest one, all are read again.
    """

    def __init__(self, chain: Chain, customer: str) -> None:
        self._chain = chain
        self._customer = customer
        self._known = 0  # jobs of the customer that were read
        self._ids: dict[str, int] = {}
        self._newest: tuple[int, str] | None = None
        self._reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Read the jobs that are new. Raises ChainError."""
        async with self._reading:
            found = await self._read(max(0, self._known - 1))
            if self._newest is not None and found[:1] != [self._newest]:
                self.forget()
                found = await self._read(0)
            for job_id, definition_hash in found:
                self._ids.setdefault(definition_hash, job_id)
            self._known = max(0, self._known - 1) + len(found)
            self._newest = found[-1] if found else None

    async def _read(self, first: int) -> list[tuple[int, str]]:
        """Return the jobs of the customer without the `first` ones, with their hashes."""
        ids = await self._chain.jobs_by_customer(self._customer, first)
        return [(job.id, job.definition.definition_hash) for job in await self._chain.jobs(ids)]

    def find(self, definition_hash: str) -> int | None:
        """Return the id of the first job with this hash, as of the last `refresh`; None if there is none."""
        return self._ids.get(definition_hash)

    def forget(self) -> None:
        """Read everything again next time, because a reorganisation of the chain has replaced jobs."""
        self._known, self._newest = 0, None
        self._ids.clear()
