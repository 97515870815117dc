"""Sets up the chain of the one-machine grid: gas for its keys, the contracts, credits, approved providers.

All steps are idempotent.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.deploy import Roles, deploy_to_book
from deepgrid.chain.offers import proposal_hash
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ConfigurationError, ContractError, NotFound
from deployments.onemachine.node.anvil import Anvil
from deployments.onemachine.parties.party_plan import ADMIN, CUSTOMER, OPERATOR, KeyRing

GAS_WEI = 10**24
CREDIT_WEI = 10**18
LEAST_CREDITS_WEI = 1_000 * CREDIT_WEI
MINTED_WEI = 10_000 * CREDIT_WEI
REGISTRATION_WITHIN_S = 120.0
POLL_S = 0.2


def make_keys(keys: KeyRing) -> None:
    """Create missing key files."""
    for name in keys.names:
        if not keys.file(name).exists():
            Wallet.create(keys.file(name))


async def set_up_contracts(book_file: Path, anvil: Anvil, keys: KeyRing, urls: dict[str, str]) -> None:
    """Deploy missing contracts and write the address book. `urls` are its fields with endpoints."""
    await _give_gas(anvil, keys)
    rpc_url = anvil.rpc_url
    admin, operator = Wallet.load(keys.file(ADMIN)), Wallet.load(keys.file(OPERATOR))
    book, _ = await deploy_to_book(
        book_file, rpc_url, admin, Roles.all_of(operator.address), {"rpc_url": rpc_url, **urls}, replace_lost=True
    )
    await _give_credits(book, admin, Wallet.load(keys.file(CUSTOMER)).address)


async def approve_providers(book_file: Path, keys: KeyRing) -> None:
    """Wait until every provider has registered, and approve their proposals.

    Raises ConfigurationError when one does not register in time.
    """
    book, operator = AddressBook.load(book_file), Wallet.load(keys.file(OPERATOR))
    async with await Chain.connect(book) as chain:
        writer = Writer(chain, Sender(chain, operator))
        addresses = [Wallet.load(keys.file(name)).address for name in keys.providers]
        await asyncio.gather(*(_approve(chain, writer, address) for address in addresses))


async def _give_gas(anvil: Anvil, keys: KeyRing) -> None:
    """Give the keys enough gas for years. Only a development chain can do this, on its private socket."""
    addresses = [Wallet.load(keys.file(name)).address for name in keys.names]
    node = anvil.private()
    try:
        await node.batch([("anvil_setBalance", [address, hex(GAS_WEI)]) for address in addresses])
    finally:
        await node.close()


async def _give_credits(book: AddressBook, admin: Wallet, customer: str) -> None:
    async with await Chain.connect(book) as chain:
        if await chain.balance(customer) < LEAST_CREDITS_WEI:
            await Writer(chain, Sender(chain, admin)).mint(customer, MINTED_WEI)


async def _approve(chain: Chain, writer: Writer, address: str) -> None:
    deadline = time.monotonic() + REGISTRATION_WITHIN_S
    while time.monotonic() < deadline:
        try:
            provider = await chain.provider(address)
        except NotFound:
            await asyncio.sleep(POLL_S)
            continue
        if not provider.waiting_for_approval or await _approve_what_waits(chain, writer, address):
            return
    raise ConfigurationError(f"The provider {address} did not register within {REGISTRATION_WITHIN_S:.0f} s.")


async def _approve_what_waits(chain: Chain, writer: Writer, address: str) -> bool:
    """Approve the proposal that was read. False when it changed meanwhile."""
    proposed = await chain.proposal(address)
    try:
        if proposed is not None:
            await writer.approve_proposal(address, proposal_hash(proposed))
    except ContractError as error:
        if error.name == "ProposalChanged":
            return False
        if error.name != "WaitingApprovalOnly":  # the operator's flow has approved it
            raise
    return True
