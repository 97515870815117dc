"""What the one-machine grid puts on its chain: gas for its keys, the contracts, credits, approved providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.deploy import deploy
from deepgrid.chain.node import Node
from deepgrid.chain.sender import Sender
from deepgrid.chain.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ConfigurationError, NotFound
from deployments.onemachine.keys import ADMIN, CUSTOMER, OPERATOR, KeyRing

GAS_WEI = 10**24
CREDIT_WEI = 10**18
LEAST_CREDITS_WEI = 1_000 * CREDIT_WEI
MINTED_WEI = 10_000 * CREDIT_WEI
REGISTRATION_WITHIN_S = 120.0
POLL_S = 0.2


async def set_up_contracts(book_file: Path, rpc_url: str, keys: KeyRing, urls: dict[str, str]) -> AddressBook:
    """Deploy what is missing, and write the address book with `urls` (its fields that name endpoints)."""
    await give_gas(rpc_url, [path for path in keys.folder.iterdir() if path.suffix != ".lease"])
    standing = AddressBook.load(book_file) if book_file.exists() else None
    admin, operator = keys.wallet(ADMIN), keys.wallet(OPERATOR)
    deployment = await deploy(rpc_url, admin, operator.address, standing)
    book = AddressBook(
        chain_id=deployment.chain_id, rpc_url=rpc_url, meta_scheduler=deployment.meta_scheduler,
        credit=deployment.credit, provider_manager=deployment.provider_manager, first_block=deployment.first_block,
        **urls,
    )  # fmt: skip
    book.save(book_file)
    await give_credits(book, admin, keys.wallet(CUSTOMER).address)
    return book


async def give_gas(rpc_url: str, key_files: Iterable[Path]) -> None:
    """Give each key enough for a long life; only a development chain can do that."""
    async with await Node.at(rpc_url) as node:
        addresses = [Wallet.load(file).address for file in key_files]
        await node.rpc.batch([("anvil_setBalance", [address, hex(GAS_WEI)]) for address in addresses])


async def give_credits(book: AddressBook, admin: Wallet, customer: str) -> None:
    """Mint credits for a customer who has few left."""
    async with await Chain.connect(book) as chain:
        if await chain.balance(customer) < LEAST_CREDITS_WEI:
            await Writer(chain, Sender(chain, admin)).mint(customer, MINTED_WEI)


async def approve_providers(book: AddressBook, operator: Wallet, providers: Iterable[str]) -> None:
    """Wait until each of `providers` has registered, and approve what it proposes.

    Raises ConfigurationError when one does not register in time.
    """
    async with await Chain.connect(book) as chain:
        writer = Writer(chain, Sender(chain, operator))
        await asyncio.gather(*(_approve(chain, writer, address) for address in providers))


async def _approve(chain: Chain, writer: Writer, address: str) -> None:
    deadline = time.monotonic() + REGISTRATION_WITHIN_S
    while time.monotonic() < deadline:
        try:
            provider = await chain.provider(address)
        except NotFound:
            await asyncio.sleep(POLL_S)
            continue
        if provider.waiting_for_approval:
            await writer.approve_provider(address)
        return
    raise ConfigurationError(f"The provider {address} did not register within {REGISTRATION_WITHIN_S:.0f} s.")
