"""Retires a grid's contracts: refuses new jobs, waits until all jobs are over and withdraws the platform's cut.

Then it gives each holder the same credits on the new contracts. A holder's balance is the sum of the old token's
transfers up to the first block of the new contracts. One mint of exactly this amount pays the holder, and marks the
holder as done. Holders may use old and new credits meanwhile. Only the token's standard event is read from the old
contracts, because earlier releases may have had other functions.

Both steps can be repeated at any time, and do only what is missing. Their only state is the chain.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from deepgrid.chain.batches import all_of
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.writer import Writer
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Job

JOBS_AT_ONCE = 500
POLL_S = 5.0
BLOCKS_AT_ONCE = 2000
MINTS_AT_ONCE = 100
EARLIER_WAIT_S = 120.0
NOWHERE = "0x" + "0" * 40


async def retire(writer: Writer, chain: Chain, tell: Callable[[str], None], poll_s: float = POLL_S) -> int:
    """Close the grid, wait until all jobs are over, and withdraw the cut. `writer` belongs to the admin.

    `tell` gets a line per step, and one whenever the number of open jobs changes. Returns the wei that stay in the
    contracts: another account sent them, and no function pays them out.
    """
    if await chain.accepts_requests():
        await writer.accept_requests(False)
        tell("The grid refuses new jobs from now on.")
    jobs = await open_jobs(chain, range(1, await chain.job_count() + 1))
    before = -1
    while jobs:
        if len(jobs) != before:
            how_many = "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
            tell(f"{how_many} not over. The first is job {jobs[0].id}, {jobs[0].status.words}.")
            before = len(jobs)
        await asyncio.sleep(poll_s)
        jobs = await open_jobs(chain, [job.id for job in jobs])
    tell("All jobs are over.")
    if cut_wei := await chain.platform_cut():
        await writer.withdraw_cut(cut_wei)
        tell("The platform's cut is withdrawn.")
    return await chain.balance(chain.book.meta_scheduler)


async def open_jobs(chain: Chain, ids: Sequence[int]) -> list[Job]:
    """Return the jobs that are not over."""
    found: list[Job] = []
    for at in range(0, len(ids), JOBS_AT_ONCE):
        found += [job for job in await chain.jobs(list(ids[at : at + JOBS_AT_ONCE])) if job.status.hot]
    return found


async def move_credits(
    old: AddressBook, writer: Writer, new: Chain, tell: Callable[[str], None], unclaimed_wei: int = 0
) -> int:
    """Mint the credits that holders of the old contracts still lack on the new ones. Returns the minted wei.

    The old contract may keep `unclaimed_wei`, which another account sent to it. Raises ConfigurationError if it still
    holds more: deposits or the platform's cut. Raises ChainError (transient) while an earlier transaction of the minter
    is pending.
    """
    if old.chain_id != new.book.chain_id or old.credit == new.book.credit:
        raise ConfigurationError(
            "The two address books are not of two grids on one chain.", next_step="Name the old and the new book."
        )
    held = await _balances(new, old, new.book.first_block)
    if held.pop(old.meta_scheduler, 0) > unclaimed_wei:
        raise await _too_early(old, new)
    await new.until_mined(writer.address, EARLIER_WAIT_S)  # a pending mint would be sent twice
    minted = await _mints(new)
    missing = [(holder, held[holder]) for holder in sorted(held) if (holder, held[holder]) not in minted]
    for start in range(0, len(missing), MINTS_AT_ONCE):
        await _mint(missing[start : start + MINTS_AT_ONCE], writer, tell)
    return sum(wei for _, wei in missing)


async def _mint(missing: Sequence[tuple[str, int]], writer: Writer, tell: Callable[[str], None]) -> None:
    """Mint in parallel, and wait for all mints even if one fails. Raises the first error."""

    async def mint(holder: str, wei: int) -> None:
        await writer.mint(holder, wei)
        tell(f"{holder} has its credits of the old grid.")

    await all_of(mint(holder, wei) for holder, wei in missing)


async def _too_early(old: AddressBook, new: Chain) -> ConfigurationError:
    """Return the error that explains why the old contract held credits when the new ones began."""
    now = await _balances(new, old, (await new.head()).number)
    if left := now[old.meta_scheduler]:
        return ConfigurationError(
            f"The old contract still holds {left} wei of deposits, of the platform's cut, or sent by another account.",
            next_step="Run `dps operator retire` with the old address book and the release of its contracts. It says"
            " what to do next.",
        )
    return ConfigurationError(
        "The new contracts were deployed before the old grid was retired.",
        next_step="Deploy them again, into another address book: `dps operator deploy`.",
    )


async def _balances(chain: Chain, book: AddressBook, last_block: int) -> Counter[str]:
    """Return the balance of each holder of the book's token at the end of this block, in wei."""
    balances: Counter[str] = Counter()
    async for sender, receiver, wei in _transfers(chain, book.credit, book.first_block, last_block):
        balances[sender] -= wei
        balances[receiver] += wei
    del balances[NOWHERE]
    return +balances


async def _mints(chain: Chain) -> set[tuple[str, int]]:
    """Return receiver and wei of each mint of the chain's token."""
    head = (await chain.head()).number
    found = _transfers(chain, chain.book.credit, chain.book.first_block, head)
    return {(receiver, wei) async for sender, receiver, wei in found if sender == NOWHERE}


async def _transfers(chain: Chain, token: str, first: int, last: int) -> AsyncIterator[tuple[str, str, int]]:
    """Return sender, receiver and wei of each transfer in these blocks, in order."""
    contract = interface("Credit")
    for start in range(first, last + 1, BLOCKS_AT_ONCE):
        for log in await chain.logs(token, start, min(last, start + BLOCKS_AT_ONCE - 1), [contract.topic("Transfer")]):
            with making_sense("transfers"):
                event = contract.event(log)
                assert event is not None
                transfer = (str(event.args["from"]), str(event.args["to"]), int(event.args["value"]))
            yield transfer
