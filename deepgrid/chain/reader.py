"""The contracts of one grid as raw calls and events, and their discovery from the MetaScheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.contract import Event, interface
from deepgrid.chain.node.node import REQUEST_TIMEOUT_S, Node, Rpc
from deepgrid.chain.node.node_errors import Asked, Request, making_sense
from deepgrid.chain.transactions.contract_errors import refusal
from deepgrid.errors import ChainError, ConfigurationError, ContractError, GridError

LOGS_AT_ONCE = 200  # decoded in one go
NO_SUCH_JOB = "InvalidJob"  # name of the contract's error

Result = TypeVar("Result")

Read = tuple[str, str, str, tuple[Any, ...]]
"""A call of a view: the contract's address and name, the function, its arguments."""
Ask = Callable[[Sequence[Request]], Awaitable[list[Any]]]


async def read_contracts(ask: Ask, reads: Sequence[Read], at: str = "latest") -> list[Any]:
    """Return the results of these calls from one exchange with the node, as of the end of a block."""
    requests: list[Request] = [
        ("eth_call", [{"to": address, "data": interface(contract).encode(function, *args)}, at])
        for address, contract, function, args in reads
    ]
    try:
        answers = await ask(requests)
    except ChainError as error:
        raise refusal(error) from None
    results = []
    for (_, contract, function, _), answer in zip(reads, answers, strict=True):
        with making_sense("a contract's answer"):
            results.append(interface(contract).decode(function, bytes.fromhex(answer[2:])))
        await asyncio.sleep(0)  # decoding thousands of jobs takes seconds: others get their turn meanwhile
    return results


@dataclass
class SeenJobs:
    """Repeats reads of the newest block that miss a job which an earlier read has shown. Ids count from 1.

    Nodes do not always answer from the same block. A pool of nodes has members that lag behind, and anvil answers from
    the block before for a moment while it mines. Such an answer says that a job does not exist, although the job was
    just listed. A read of it is repeated for a few seconds. After that the answer counts: a reorganisation removed it.

    Attributes:
        patience_s: For how long a read is repeated.
        pause_s: Pause between two attempts.
        newest: Id of the newest job.
    """

    patience_s: float = 10.0
    pause_s: float = 0.1
    newest: int = 0

    def add(self, job_ids: Sequence[int]) -> None:
        """Remember jobs that an answer contained."""
        self.newest = max(self.newest, *job_ids) if job_ids else self.newest

    async def read(self, job_ids: Sequence[int], read: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `read`, which reads these jobs as of the newest block.

        Raises ContractError `InvalidJob` if a job was never seen, or is still missing after `patience_s`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.patience_s
        while True:
            try:
                result = await read()
            except ContractError as error:
                if error.name != NO_SUCH_JOB or not self._has_seen(job_ids):
                    raise
                if clock() >= deadline:
                    self.newest = max(min(job_ids) - 1, 0)  # a reorganisation removed it: do not wait for it again
                    raise
                await asyncio.sleep(self.pause_s)
            else:
                self.add(job_ids)
                return result

    def _has_seen(self, job_ids: Sequence[int]) -> bool:
        return bool(job_ids) and min(job_ids) > 0 and max(job_ids) <= self.newest


class Reader(Node):
    """The contracts of one grid on one chain. `connect` makes it; `async with` or `close` closes it."""

    def __init__(self, book: AddressBook, rpc: Rpc) -> None:
        super().__init__(rpc, book.chain_id)
        self.book = book
        self.seen_jobs = SeenJobs()

    @classmethod
    async def connect(cls, book: AddressBook, asked: Asked = lambda *_: None) -> Self:
        """Return the grid of `book`. `asked` is called after each exchange with the node.

        Raises ConfigurationError if the node is on another chain, or has no contract at an address of the book.
        """
        chain = cls(book, Rpc(book.rpc_url, REQUEST_TIMEOUT_S, asked, book.authorities))
        try:
            await chain._check()
        except BaseException:
            await chain.close()
            raise
        return chain

    async def _check(self) -> None:
        found = await self.rpc.chain_id()
        if found != self.book.chain_id:
            raise ConfigurationError(
                f"Wrong chain: the node at {self.rpc.host} is on chain {found}, the address book is of chain"
                f" {self.book.chain_id}.",
                next_step="Use the address book of the grid that runs there.",
            )
        named = self.book.contracts
        for (name, address), there in zip(named.items(), await self.has_code(list(named.values())), strict=True):
            if not there:
                raise ConfigurationError(
                    f"There is no {name} contract at {address}.",
                    next_step="The chain began again: use its new address book.",
                )

    async def events(self, first_block: int, last_block: int | None, names: Sequence[str] = ()) -> list[Event]:
        """Return events of the MetaScheduler in these blocks (inclusive), with these `names` or all, in order.

        A `last_block` of None means the newest block.
        """
        contract = interface("MetaScheduler")
        topics = [contract.topic(name) for name in names] or contract.topics()
        logs = await self.logs(self.book.meta_scheduler, first_block, last_block, [topics])
        events: list[Event] = []
        for at in range(0, len(logs), LOGS_AT_ONCE):
            with making_sense("events"):
                decoded = [contract.event(log) for log in logs[at : at + LOGS_AT_ONCE]]
            events += [event for event in decoded if event is not None]
            await asyncio.sleep(0)
        return events

    async def _read(self, contract: str, function: str, *args: Any) -> Any:
        return (await self._read_many([(contract, function, *args)]))[0]

    async def _read_many(self, reads: Sequence[tuple[Any, ...]], block: int | None = None) -> list[Any]:
        """Return the results of calls (contract, function, *args) from one HTTP request."""
        known = self.book.contracts
        calls = [(known[contract], contract, name, tuple(args)) for contract, name, *args in reads]
        if block is None:
            return await read_contracts(self.newest, calls)
        return await read_contracts(self.rpc.batch, calls, hex(block))


@dataclass(frozen=True)
class GridContracts:
    """The chain of a grid, and the contracts that its MetaScheduler names."""

    chain_id: int
    credit: str
    provider_manager: str


async def discover(rpc_url: str, meta_scheduler: str) -> GridContracts:
    """Ask the node at `rpc_url` for the grid of this MetaScheduler.

    Raises ChainError if the node does not answer, ConfigurationError if there is no MetaScheduler at the address.
    """
    rpc = Rpc(rpc_url)
    try:
        chain_id = await rpc.chain_id()
        found = await read_contracts(
            rpc.batch, [(meta_scheduler, "MetaScheduler", name, ()) for name in ("credit", "providerManager")]
        )
        return GridContracts(chain_id, *found)
    except GridError as error:
        if error.transient:
            raise
    finally:
        await rpc.close()
    raise ConfigurationError(f"There is no MetaScheduler contract at {meta_scheduler}.")
