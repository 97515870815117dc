"""Opens the grid for a verb, and parses addresses and amounts. This module has the heavy imports of the chain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from eth_utils.address import is_address, is_checksum_address, to_checksum_address

from deepgrid.billing.credits import MAX_WEI, format_credits, parse_credits
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.cli.access.address_book import find_book
from deepgrid.cli.access.environment import ORACLE, variables
from deepgrid.cli.access.key_file import existing_key
from deepgrid.client.grid import AsyncGrid
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.client.settings import ClientSettings
from deepgrid.errors import InputError, NotFound

# A command says at once that the node does not answer. Waits for a job are patient still.
SETTINGS = ClientSettings(patience_s=0)


@asynccontextmanager
async def as_customer(key: Path, book: Path | None, *, asks_services: bool = False) -> AsyncIterator[AsyncGrid]:
    """Yield the grid of the customer with this key. It connects when it is first used.

    Verbs that ask the services say so: what they need is loaded before the first request. A request in flight while
    this process loads modules would otherwise seem to be slow.
    """
    key = existing_key(key)
    if asks_services:
        import httpcore  # noqa: F401 # httpx loads it at its first request

        import deepgrid.services.client  # noqa: F401
    async with AsyncGrid(key, await find_book(book), settings=_settings()) as grid:
        yield grid


@asynccontextmanager
async def as_reader(book: Path | None) -> AsyncIterator[AsyncGrid]:
    """Yield the grid without a key."""
    async with AsyncGrid.read_only(await find_book(book), settings=_settings()) as grid:
        yield grid


@asynccontextmanager
async def as_sender(key: Path, book: Path | None) -> AsyncIterator[CustomerSession]:
    """Open the chain for the transactions of operators, providers and minters."""
    key = existing_key(key)
    async with customer_session(CustomerSettings(key, await find_book(book))) as session:
        yield session


@asynccontextmanager
async def as_anyone(book: Path | None) -> AsyncIterator[Chain]:
    """Open the chain for public reads, without a key."""
    async with await Chain.connect(AddressBook.load(await find_book(book))) as chain:
        yield chain


def _settings() -> ClientSettings:
    return replace(SETTINGS, queue_url=variables().get(ORACLE))


def wallet(key: Path) -> Wallet:
    return Wallet.load(existing_key(key))


def address(text: str) -> str:
    """Return an address with its checksum. Raises InputError for anything else."""
    digits = text[2:]
    if not is_address(text) or not text.startswith("0x"):
        raise InputError(f"{text[:60]!r} is not an address.", next_step="Write 0x and 40 hex digits.")
    if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(text):
        raise InputError(f"{text} has a wrong checksum: a digit is mistyped.")
    return str(to_checksum_address(text))


def amount(text: str, *, wei: bool) -> int:
    """Parse an amount of credits, or of wei. Raises InputError."""
    if not wei:
        return parse_credits(text)
    if not (text.isascii() and text.isdigit() and len(text) < 80 and int(text) <= MAX_WEI):
        raise InputError(f"{text[:60]!r} is not an amount of wei.", next_step="Write a whole number.")
    return int(text)


def format_amount(value_wei: int, *, wei: bool) -> str:
    """Format an amount so that `amount` can parse it."""
    return str(value_wei) if wei else format_credits(value_wei)


async def provider_address(chain: Chain, who: str, key: Path) -> str:
    """Return the address of a provider. Raises NotFound for a name that no cluster has, or that several have."""
    if not who:
        return wallet(key).address
    if who.startswith("0x"):
        return address(who)
    named = [one.address for one in await chain.providers() if one.name == who]
    if len(named) == 1:
        return named[0]
    what = "Several providers call their cluster" if named else "No provider calls its cluster"
    raise NotFound(f"{what} {who[:60]!r}.", next_step="Give the address; `dps provider list` shows them.")
