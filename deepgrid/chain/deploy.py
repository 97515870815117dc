"""Puts the grid's contracts on a chain and gives each role what it needs.

Running it again with the address book of a grid that stands deploys nothing and gives only the
roles that are missing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from eth_utils.address import to_checksum_address

from deepgrid.chain.abi import interface
from deepgrid.chain.book import AddressBook
from deepgrid.chain.errors import refusal, role_hash
from deepgrid.chain.node import Node
from deepgrid.chain.rpc import making_sense
from deepgrid.chain.sender import Sender
from deepgrid.chain.transaction import Call
from deepgrid.chain.wallet import Wallet
from deepgrid.errors import ChainError


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where a grid's contracts stand: the chain's part of an address book."""

    chain_id: int
    credit: str
    provider_manager: str
    meta_scheduler: str
    first_block: int


async def deploy(rpc_url: str, admin: Wallet, operator: str, standing: AddressBook | None = None) -> Deployment:
    """Deploy and wire Credit, ProviderManager and MetaScheduler; `operator` may assign and approve.

    `admin` pays the gas, and is admin of the contracts and minter of credits. With `standing` the
    contracts of that book are kept if they are on this chain, and only missing roles are given.
    """
    async with await Node.at(rpc_url) as node:
        sender = Sender(node, admin)
        found = await _standing(node, standing) if standing is not None else None
        grid = found or await _deploy_all(node, sender)
        await asyncio.gather(
            _grant(node, sender, grid.meta_scheduler, "METASCHEDULER_ROLE", operator),
            _grant(node, sender, grid.provider_manager, "METASCHEDULER_ROLE", operator),
            _grant(node, sender, grid.provider_manager, "METASCHEDULER_CONTRACT_ROLE", grid.meta_scheduler),
        )
        return grid


async def _standing(node: Node, book: AddressBook) -> Deployment | None:
    addresses = [book.credit, book.provider_manager, book.meta_scheduler]
    if book.chain_id != node.chain_id or not all(await node.has_code(addresses)):
        return None
    return Deployment(book.chain_id, book.credit, book.provider_manager, book.meta_scheduler, book.first_block)


async def _deploy_all(node: Node, sender: Sender) -> Deployment:
    first_block = (await node.head()).number + 1
    credit, provider_manager = await asyncio.gather(_create(sender, "Credit"), _create(sender, "ProviderManager"))
    meta_scheduler = await _create(sender, "MetaScheduler", credit, provider_manager)
    return Deployment(node.chain_id, credit, provider_manager, meta_scheduler, first_block)


async def _create(sender: Sender, contract: str, *args: str) -> str:
    receipt = await sender.send(Call(f"Deploying {contract}", None, interface(contract).creation(*args)))
    if receipt.contract is None:
        raise ChainError(f"The node does not tell the address of the deployed {contract}.")
    return str(to_checksum_address(receipt.contract))


async def _grant(node: Node, sender: Sender, contract: str, role: str, account: str) -> None:
    """Give `account` the role unless it has it."""
    access = interface("ProviderManager")  # the role functions are the same everywhere
    asked = Call("Looking up a role", contract, access.encode("hasRole", role_hash(role), account))
    try:
        with making_sense("a role"):
            granted = access.decode("hasRole", await node.rpc.w3.eth.call(asked.as_params(account)))
    except ChainError as error:
        raise refusal(error) from None
    if not granted:
        await sender.send(Call(f"Granting {role}", contract, access.encode("grantRole", role_hash(role), account)))
