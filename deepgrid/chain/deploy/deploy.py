"""Deploys the grid's contracts, links them, and grants their roles.

It may run again at any time, even after it was killed: it keeps what exists and does what is missing. Before each
transaction it checks the effect: a contract at the address that the nonce gives (`draft.py`), a role at its contract.
So it sends nothing while another transaction of the key is in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from eth_typing import HexAddress, HexStr
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from deepgrid.chain.book import AddressBook
from deepgrid.chain.deploy.draft import Creation, Draft
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node import Node
from deepgrid.chain.reader import read_contracts
from deepgrid.chain.transactions.contract_errors import role_hash
from deepgrid.chain.transactions.nonce_lease import NonceLease
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, ConfigurationError


@dataclass(frozen=True, slots=True)
class Roles:
    """Addresses that may assign jobs, panic them, and approve providers.

    The contracts have one role for assigning and panicking: an account that may do one may do the other.
    """

    assign: tuple[str, ...] = ()
    panic: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()

    @classmethod
    def all_of(cls, operator: str) -> Roles:
        """Return all three for one address."""
        return cls((operator,), (operator,), (operator,))


@dataclass(frozen=True, slots=True)
class Deployment:
    """Addresses of a grid's contracts: the chain's part of an address book. `sent` counts transactions."""

    chain_id: int
    credit: str
    provider_manager: str
    meta_scheduler: str
    first_block: int
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that an account must have, and its `meaning` as a sentence for the operator."""

    contract: str
    address: str
    role: str
    account: str
    meaning: str


@dataclass(frozen=True, slots=True)
class DeploySettings:
    """Timeouts of a deployment, in seconds: for earlier transactions, between two polls, for the deployment lock."""

    in_flight_wait_s: float = 120.0
    poll_s: float = 0.2
    lock_wait_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Earlier:
    """The leftovers of earlier runs: the contracts of the book `standing`, and a killed run's progress in `draft_file`.

    The contracts are kept. If they are missing on the chain, this is an error. With `replace_lost` (a development chain
    that began again) they are replaced instead.
    """

    standing: AddressBook | None = None
    draft_file: Path | None = None
    replace_lost: bool = False


async def deploy_to_book(
    where: Path,
    rpc_url: str,
    admin: Wallet,
    roles: Roles,
    endpoints: Mapping[str, str | None],
    *,
    replace_lost: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    settings: DeploySettings = DeploySettings(),
) -> tuple[AddressBook, int]:
    """Call `deploy` for the address book at `where`, and write the book at the end.

    `endpoints` are the book's other fields. Until then a draft is next to the book. Returns the book and the number of
    sent transactions.
    """
    standing = AddressBook.load(where) if where.exists() else None
    draft_file = where.with_name(f"{where.name}.deploying")
    earlier, authorities = Earlier(standing, draft_file, replace_lost), endpoints.get("authorities")
    grid = await deploy(rpc_url, admin, roles, earlier, tell=tell, settings=settings, authorities=authorities)
    contracts = asdict(grid)
    sent = contracts.pop("sent")
    book = AddressBook.model_validate({**contracts, **endpoints})
    if book != standing:
        book.save(where)
    draft_file.unlink(missing_ok=True)
    return book, sent


async def deploy(
    rpc_url: str,
    admin: Wallet,
    roles: Roles,
    earlier: Earlier = Earlier(),
    *,
    tell: Callable[[str], None] = lambda _: None,
    settings: DeploySettings = DeploySettings(),
    authorities: str | None = None,
) -> Deployment:
    """Deploy and link Credit, ProviderManager and MetaScheduler, and grant `roles`.

    `admin` pays the gas, and becomes admin of the contracts and minter of credits. `tell` gets one line per step.
    `authorities` are certificates (PEM) to trust for the node besides the system's.

    Raises ConfigurationError for a book or draft of another chain, ChainError if the node does not answer or another
    process deploys with this key, ContractError if the key may not grant roles.
    """
    file = admin.key_file
    lock = None if file is None else file.with_name(f"{file.name}.deploying")
    async with await Node.at(rpc_url, authorities) as node, NonceLease(lock, settings.lock_wait_s):
        sender = Sender(node, admin)
        try:
            return await _Deploying(node, sender, tell, settings).run(roles, earlier)
        finally:
            await sender.close()


class _Deploying:
    def __init__(self, node: Node, sender: Sender, tell: Callable[[str], None], settings: DeploySettings) -> None:
        self._settings = settings
        self._node = node
        self._sender = sender
        self._tell = tell
        self._sent = 0

    async def run(self, roles: Roles, earlier: Earlier) -> Deployment:
        kept = (
            None if earlier.standing is None else await self._reusable_contracts(earlier.standing, earlier.replace_lost)
        )
        await self._wait_for_earlier()
        grid = kept or await self._create_all(Draft.open(earlier.draft_file, self._node.chain_id, self._sender.address))
        for grant in grants(grid, roles):
            await self._give(grant)
        return replace(grid, sent=self._sent)

    async def _reusable_contracts(self, book: AddressBook, replace_lost: bool) -> Deployment | None:
        """Return the contracts of the book; None if they must be replaced."""
        if book.chain_id != self._node.chain_id:
            raise ConfigurationError(
                f"The address book is of chain {book.chain_id}, the node at {self._node.rpc.host} is on chain"
                f" {self._node.chain_id}.",
                next_step="Use another file for the book of that chain, or the node of this chain.",
            )
        named = book.contracts
        there = await self._node.has_code(list(named.values()))
        lost = [
            f"{name} at {address}" for (name, address), found in zip(named.items(), there, strict=True) if not found
        ]
        if lost and replace_lost:
            return None
        if lost:
            raise ConfigurationError(
                f"The address book names contracts that are not on chain {book.chain_id}: {', '.join(lost)}.",
                next_step="Wait until the node has caught up; if the chain began again, move the book away.",
            )
        linked = [await self._ask("MetaScheduler", book.meta_scheduler, view) for view in ("credit", "providerManager")]
        if linked != [book.credit, book.provider_manager]:
            raise ConfigurationError(
                "The contracts in the address book do not belong together.", next_step="Correct the book."
            )
        for name, address in named.items():
            self._tell(f"{name} exists at {address}")
        return Deployment(book.chain_id, book.credit, book.provider_manager, book.meta_scheduler, book.first_block)

    # -- contracts ---------------------------------------------------------------------------

    async def _create_all(self, draft: Draft) -> Deployment:
        if not await self._deployed_address(draft, "Credit", interface("Credit").creation()):
            draft.begin((await self._node.head()).number + 1)
        credit = await self._create(draft, "Credit")
        manager = await self._create(draft, "ProviderManager")
        scheduler = await self._create(draft, "MetaScheduler", credit, manager)
        return Deployment(self._node.chain_id, credit, manager, scheduler, draft.notes.first_block)

    async def _create(self, draft: Draft, name: str, *args: str) -> str:
        """Return the address of the contract. Creates it unless an earlier run did."""
        data = interface(name).creation(*args)
        if found := await self._deployed_address(draft, name, data):
            self._tell(f"{name} exists at {found}")
            return found
        _, sent = await self._node.transaction_counts(self._sender.address)
        place = _created_by(self._sender.address, sent)
        draft.note(name, Creation(hash=_hash(data), address=place))
        receipt = await self._send(Call(f"Deploying {name}", None, data))
        if receipt.contract is None:
            raise ChainError(f"The node does not report the address of the deployed {name}.")
        address = str(to_checksum_address(receipt.contract))
        if address != place:  # another program used the key meanwhile
            draft.note(name, Creation(hash=_hash(data), address=address))
        self._tell(f"{name} deployed at {address}")
        return address

    async def _deployed_address(self, draft: Draft, name: str, data: str) -> str | None:
        """Return the address where an earlier run deployed exactly this contract; None if there is none."""
        noted = draft.notes.contracts.get(name)
        if noted is None or noted.hash != _hash(data) or not all(await self._node.has_code([noted.address])):
            return None
        return noted.address

    async def _wait_for_earlier(self) -> None:
        """Wait until all transactions of an earlier run are mined: before that, their effects cannot be read."""
        address, settings = self._sender.address, self._settings
        told = partial(self._tell, f"Waiting for an earlier transaction of {address} to be mined")
        await self._node.until_mined(address, settings.in_flight_wait_s, poll_s=settings.poll_s, waits=told)

    # -- roles -------------------------------------------------------------------------------

    async def _give(self, grant: Grant) -> None:
        args = (role_hash(grant.role), grant.account)
        if await self._ask(grant.contract, grant.address, "hasRole", *args):
            self._tell(f"{grant.meaning} already")
            return
        data = interface(grant.contract).encode("grantRole", *args)
        await self._send(Call(f"Granting {grant.role}", grant.address, data))
        self._tell(f"{grant.meaning} from now on")

    async def _send(self, call: Call) -> Any:
        receipt = await self._sender.send(call)
        self._sent += 1
        return receipt

    async def _ask(self, contract: str, address: str, view: str, *args: Any) -> Any:
        return (await read_contracts(self._node.newest, [(address, contract, view, args)]))[0]


def grants(grid: Deployment, roles: Roles) -> list[Grant]:
    """Return the roles that the contracts need, and the accounts that get `roles`."""
    scheduler, manager = ("MetaScheduler", grid.meta_scheduler), ("ProviderManager", grid.provider_manager)
    role = "METASCHEDULER_ROLE"
    linked = "MetaScheduler and ProviderManager work together"
    wiring = Grant(*manager, "METASCHEDULER_CONTRACT_ROLE", grid.meta_scheduler, linked)
    who = dict.fromkeys((*roles.assign, *roles.panic))  # each once, in order
    assigning = [Grant(*scheduler, role, account, f"{account} assigns and panics jobs") for account in who]
    who = dict.fromkeys(roles.approve)
    approving = [Grant(*manager, role, account, f"{account} approves providers") for account in who]
    return [wiring, *assigning, *approving]


def _created_by(sender: str, number: int) -> str:
    """Return the address of the contract that the transaction of `sender` with this nonce creates."""
    from web3.types import Nonce  # here, because importing web3 takes half a second
    from web3.utils.address import get_create_address

    return str(get_create_address(HexAddress(HexStr(sender)), Nonce(number)))


def _hash(data: str) -> str:
    return "0x" + keccak(hexstr=data).hex()
