"""The chain's side of the books: the contract's events and the token's transfers over a period.

Both are read in pages, from the period's first block up to the newest one. Then the jobs and the contract's settings
are read as of the same newest block. So nothing is lost between two reads, and nodes need not keep old states. The
position of a transfer's log gives its purpose: the contract takes a deposit just before the job's event, and pays just
after the settlement's event. For a top-up, the transaction's call gives the purpose.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from deepgrid.billing.coverage import AGAIN_S
from deepgrid.billing.entries import Claim, GivenBack, Ledger, Purpose, Runs, Span, Transfer
from deepgrid.billing.period import parse_period
from deepgrid.chain.client import Chain
from deepgrid.chain.history import first_block_at, settlement_in
from deepgrid.chain.node.contract import Event, interface
from deepgrid.chain.node.node import Block
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.purposes import top_up_of, with_own_deposits, with_purposes
from deepgrid.errors import ChainError

T = TypeVar("T")

STATES = ("JobCreated", "ClaimJobEvent", "JobRefusedEvent", "JobSettledEvent")
NAMES = (*STATES, "BilledTooMuchEvent", "CancelReleasedEvent")


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Sizes of the requests: blocks per page of logs, and items per JSON-RPC batch."""

    blocks_per_page: int = 2000
    items_per_batch: int = 200


DEFAULTS = LedgerSettings()


async def read_ledger(
    chain: Chain, span: Span, hot: Iterable[int] = (), provider: str | None = None, settings: LedgerSettings = DEFAULTS
) -> Ledger:
    """Return the entries of the whole grid over `span`, with all jobs or the jobs of `provider`.

    `hot` adds jobs that may have been hot all the time, without any event. Raises ChainError, which is transient if
    the chain went back meanwhile.
    """
    head = await chain.head()
    first = await first_block(chain, span.since, head)
    end = await first_block(chain, span.until, head)
    events, moved = await read_logs(chain, first, head.number, settings)
    newest = await chain.head()  # the rest is quick, so nodes still have the state of this block
    later = await read_logs(chain, head.number + 1, newest.number, settings)
    events, moved = events + later[0], moved + later[1]
    ids = sorted({event.job_id for event in events if provider in (None, event.args.get("provider"))} | set(hot))
    contract, at = chain.book.meta_scheduler, newest.number
    jobs, balance, cut = await asyncio.gather(chain.jobs(ids, at), chain.balance(contract, at), chain.platform_cut(at))
    by_id = {job.id: job for job in jobs}
    transfers = with_own_deposits(await read_transfers(chain, events, moved, settings), events, by_id)
    times = await _times(chain, events, (head, newest), settings)
    named = {name: [event for event in events if event.name == name] for name in NAMES}
    return Ledger(
        first_block=first,
        last_block=end - 1 if end <= head.number else at,
        head_block=at,
        requested={one.job_id: one.block for one in named["JobCreated"]},
        claims=tuple(_claim(one, times) for one in named["ClaimJobEvent"]),
        given_back=tuple(map(_given_back, named["JobRefusedEvent"])),
        settlements=tuple(settlement_in(one, times[one.block]) for one in named["JobSettledEvent"]),
        transfers=transfers,
        reported_too_much={one.job_id: one.args["billingAmount"] for one in named["BilledTooMuchEvent"]},
        jobs=by_id,
        balance_wei=balance,
        platform_cut_wei=cut,
    )


async def read_older_strays(chain: Chain, ledger: Ledger, settings: LedgerSettings = DEFAULTS) -> int:
    """Return the credits in wei that the contract got before the ledger begins, and that belong to no job."""
    events, moved = await read_logs(chain, chain.book.first_block, ledger.first_block - 1, settings)
    transfers = await read_transfers(chain, events, moved, settings)
    return sum(transfer.wei for transfer in transfers if transfer.purpose is Purpose.STRAY)


# -- blocks ----------------------------------------------------------------------------------


async def first_block(chain: Chain, time: int, head: Block) -> int:
    """Return the first block that is not older than `time`; the one after `head` if there is none yet."""
    if head.timestamp < time:
        return head.number + 1
    return await first_block_at(chain, time, min(chain.book.first_block, head.number), head.number)


async def _times(
    chain: Chain, events: Sequence[Event], heads: Sequence[Block], settings: LedgerSettings
) -> dict[int, int]:
    """Return times of the blocks with claims and settlements. Checks that the chain did not go back."""
    numbers = {event.block for event in events if event.name in ("ClaimJobEvent", "JobSettledEvent")}
    wanted = sorted(numbers | {head.number for head in heads})
    blocks = [block for some in batches(wanted, settings) for block in await chain.blocks(some)]
    found = {block.number: block for block in blocks if block is not None}
    if None in blocks or any(found[head.number].hash != head.hash for head in heads):
        raise ChainError("The chain went back while the books were read.")
    return {number: block.timestamp for number, block in found.items()}


def batches(items: Sequence[T], settings: LedgerSettings = DEFAULTS) -> Iterator[list[T]]:
    """Yield the items in lists for one JSON-RPC batch each."""
    for at in range(0, len(items), settings.items_per_batch):
        yield list(items[at : at + settings.items_per_batch])


# -- logs ------------------------------------------------------------------------------------


async def read_logs(
    chain: Chain, first: int, last: int, settings: LedgerSettings = DEFAULTS, names: Sequence[str] = NAMES
) -> tuple[list[Event], list[Event]]:
    """Return events of the MetaScheduler, and transfers of credits to and from it, in these blocks, in order."""
    events = await in_pages(first, last, lambda low, high: chain.events(low, high, names), settings)
    moved = await in_pages(first, last, lambda low, high: _credit_transfers(chain, low, high), settings)
    return events, moved


async def in_pages(
    first: int, last: int, read: Callable[[int, int], Awaitable[list[Event]]], settings: LedgerSettings
) -> list[Event]:
    """Return all events of these blocks (inclusive), read page by page."""
    events: list[Event] = []
    for start in range(first, last + 1, settings.blocks_per_page):
        events += await read(start, min(last, start + settings.blocks_per_page - 1))
    return events


async def _credit_transfers(chain: Chain, first: int, last: int) -> list[Event]:
    """Return transfers of credits to and from the MetaScheduler in these blocks (inclusive), in order."""
    credit = interface("Credit")
    contract = f"0x{chain.book.meta_scheduler[2:].lower():0>64}"
    topics = ([credit.topic("Transfer"), contract], [credit.topic("Transfer"), None, contract])
    answers = await asyncio.gather(*(chain.logs(chain.book.credit, first, last, one) for one in topics))
    with making_sense("transfers"):
        decoded = [credit.event(log) for logs in answers for log in logs]
    found = {(event.block, event.log_index): event for event in decoded if event is not None}
    return [found[place] for place in sorted(found)]


async def read_transfers(
    chain: Chain, events: Sequence[Event], moved: Sequence[Event], settings: LedgerSettings = DEFAULTS
) -> tuple[Transfer, ...]:
    """Return the transfers with their purposes. If no event explains a transfer, its transaction is read."""
    contract = chain.book.meta_scheduler
    unexplained = {t.tx_hash for t in with_purposes(events, moved, contract, {}) if t.purpose is Purpose.STRAY}
    if not unexplained:
        return with_purposes(events, moved, contract, {})
    top_ups: dict[str, int] = {}
    for some in batches(sorted(unexplained), settings):
        answers = await chain.rpc.batch([("eth_getTransactionByHash", [tx_hash]) for tx_hash in some])
        with making_sense("a transaction"):
            found = {tx: top_up_of(raw["to"], raw["input"], contract) for tx, raw in zip(some, answers, strict=True)}
        top_ups |= {tx_hash: job_id for tx_hash, job_id in found.items() if job_id is not None}
    return with_purposes(events, moved, contract, top_ups)


# -- entries ---------------------------------------------------------------------------------


def _claim(event: Event, times: dict[int, int]) -> Claim:
    return Claim(event.job_id, event.args["provider"], times[event.block], event.block, event.tx_hash)


def _given_back(event: Event) -> GivenBack:
    return GivenBack(event.job_id, event.args["provider"], event.block, event.tx_hash)


class Books(ABC):
    """Common part of both parties' books. `provider` is None for the books of the whole grid.

    Each scheduled run reads the last `again_s` seconds of the run before again.
    """

    again_s = AGAIN_S

    def __init__(self, name: str, chain: Chain, folder: Path, provider: str | None) -> None:
        self.name = name
        self.chain = chain
        self.folder = folder
        self.provider = provider

    async def period(self, since: str | None, until: str | None) -> Span:
        """Return the requested period.

        Without an end it ends now: at the newest block, or at this machine's time if later.
        """
        return parse_period(since, until, await self.now())

    async def now(self) -> int:
        """Return the time of the newest block, or this machine's time if later."""
        return max(await self.chain.now(), int(time.time()))

    async def read_chain(self, span: Span) -> Ledger:
        """Return the chain's entries of the period."""
        return await read_ledger(self.chain, span, await self.hot(), self.provider)

    async def read_slurm(self, span: Span, ledger: Ledger) -> Runs | None:
        """Return what is known of the runs of the period; None if nothing is."""
        return None

    async def compare_again_from(self) -> int | None:
        """Return the time from which a scheduled run must compare again, None if it need not."""
        return None

    @abstractmethod
    async def hot(self) -> list[int]:
        """Return jobs that may have been hot for the whole period. No event of the period names these."""

    async def with_jobs(self, ledger: Ledger, runs: Runs | None) -> Ledger:
        """Return the ledger with the jobs that exist on chain and that only Slurm names."""
        named = {run.job_id for run in runs.runs} if runs is not None else set()
        missing = await self.existing(named - ledger.jobs.keys())
        jobs = await self.chain.jobs(missing)
        return replace(ledger, jobs={**ledger.jobs, **{job.id: job for job in jobs}})

    async def with_older_strays(self, ledger: Ledger) -> Ledger:
        """Return the ledger, with all credits that were sent to the contract for no job since the grid began."""
        return replace(ledger, older_strays_wei=await read_older_strays(self.chain, ledger))

    async def existing(self, job_ids: Iterable[int]) -> list[int]:
        """Return the ids of these jobs that exist on chain, sorted."""
        count = await self.chain.job_count()
        return sorted(job_id for job_id in job_ids if 1 <= job_id <= count)
