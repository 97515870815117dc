"""Changes of one customer's jobs, in the order of the chain, from a cursor on.

A block may be replaced by another one (a reorganisation). The cursor holds the hash of its block, so this is noticed,
and the last 64 blocks are read again. Changes that are only in the new blocks are reported. Those that are in both are
not repeated, except to a program that was stopped meanwhile. A change that was reported may vanish with its block.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self

from deepgrid.chain.client import Chain
from deepgrid.chain.history import BLOCKS_PER_QUERY
from deepgrid.chain.node.contract import Event
from deepgrid.chain.node.node import Block
from deepgrid.client.engine.connection import Connection
from deepgrid.client.job_values import JobChange, datetime_of
from deepgrid.errors import ChainError, InputError
from deepgrid.lifecycle.states import JobStatus

FROM_THE_FIRST_JOB = "start"
REREAD_BLOCKS = 64  # how far back it reads again after a reorganisation
REPORTS_KEPT = 10_000
_NAMES = ("NewJobRequestEvent", "JobTransitionEvent")
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,9})-([0-9a-f]{16})", re.ASCII)
_END_OF_BLOCK = 10**9 - 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place on the chain: after the event `index` of `block`, whose hash begins with `mark`."""

    block: int
    index: int
    mark: str

    @classmethod
    def at(cls, block: Block, index: int = _END_OF_BLOCK) -> Self:
        return cls(block.number, index, _mark(block))

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the cursor in a text. Raises InputError."""
        if not isinstance(text, str) or (found := _CURSOR.fullmatch(text)) is None:
            raise InputError(
                f"{str(text)[:40]!r} is not a cursor.",
                next_step=f"Use the cursor of a change, or {FROM_THE_FIRST_JOB!r} for all changes.",
            )
        return cls(int(found[1]), int(found[2]), found[3])

    def __str__(self) -> str:
        return f"{self.block}-{self.index}-{self.mark}"


async def job_changes(connection: Connection, customer: str, cursor: str | None) -> AsyncIterator[JobChange]:
    """Yield the changes of the customer's jobs after the cursor, forever. Outages of the node only delay them.

    Raises:
        InputError: The text is not a cursor.
    """
    start = None if cursor in (None, FROM_THE_FIRST_JOB) else Cursor.read(cursor or "")
    reader = ChangeReader(connection.chain, customer, start, connection.settings.confirmations)
    if cursor == FROM_THE_FIRST_JOB:
        reader.rewind()
    while True:
        changes = await connection.patiently(reader.read, forever=True)
        for change in changes:
            yield change
        if reader.caught_up:
            await asyncio.sleep(connection.settings.poll_s)


class ChangeReader:
    """Reads the changes in pages. A page that fails can be read again.

    Attributes:
        caught_up: Whether the last page ended with the newest block that is old enough.
    """

    def __init__(self, chain: Chain, customer: str, position: Cursor | None, confirmations: int) -> None:
        """Without a position it begins after the block that is the newest at the first `read`."""
        self.caught_up = False
        self._chain = chain
        self._customer = customer
        self._position = position
        self._confirmations = confirmations
        self._own: set[int] | None = None
        self._head = ""  # hash of the newest block of the last complete look
        self._reported: dict[tuple[int, JobStatus, str], None] = {}

    def rewind(self) -> None:
        """Begin with the first block of the grid."""
        self._position = Cursor(self._chain.book.first_block, -1, "")

    async def read(self) -> list[JobChange]:
        """Return the next changes, oldest first; maybe none. Raises ChainError."""
        head = await self._chain.head()
        last = max(0, head.number - self._confirmations)
        if self._own is None:
            await self._begin(head, last)
        if head.hash == self._head:
            return []
        after = await self._common(last)
        stop = min(last, after.block + BLOCKS_PER_QUERY - 1)
        self.caught_up = stop == last
        if stop >= after.block:
            changes = await self._page(after, head if stop == head.number else await self._block(stop))
        else:
            changes = []  # the position is newer than what is old enough
        if self.caught_up:
            self._head = head.hash
        return changes

    async def _begin(self, head: Block, last: int) -> None:
        if self._position is None:
            self._position = Cursor.at(head if last == head.number else await self._block(last))
        self._own = set(await self._chain.jobs_by_customer(self._customer))

    async def _common(self, last: int) -> Cursor:
        """Return the position, or a place before it if its block was replaced."""
        position = self._position
        assert position is not None
        if not position.mark:
            return position
        (block,) = await self._chain.blocks([position.block])
        if block is not None and _mark(block) == position.mark:
            return position
        return Cursor(max(self._chain.book.first_block, min(position.block, last) - REREAD_BLOCKS), -1, "")

    async def _page(self, after: Cursor, stop: Block) -> list[JobChange]:
        """Return the changes after the cursor up to the block `stop`; moves the position there."""
        assert self._own is not None
        own = set(self._own)
        events = [
            event
            for event in await self._chain.events(after.block, stop.number, _NAMES)
            if (event.block, event.log_index) > (after.block, after.index) and self._is_own(event, own)
        ]
        blocks = await self._blocks(events, stop)
        changes = []
        for event in events:
            change = _change(event, blocks[event.block])
            key = (change.job_id, change.status, change.transaction)
            if key not in self._reported:
                self._reported[key] = None
                changes.append(change)
        while len(self._reported) > REPORTS_KEPT:
            del self._reported[next(iter(self._reported))]
        self._own, self._position = own, Cursor.at(stop)
        return changes

    def _is_own(self, event: Event, own: set[int]) -> bool:
        """Return whether the event is about a job of the customer. It adds new jobs to `own`."""
        if event.name == "NewJobRequestEvent":  # after a reorganisation the id may be another customer's
            (own.add if event.args["customer"] == self._customer else own.discard)(event.job_id)
        return event.job_id in own

    async def _blocks(self, events: list[Event], stop: Block) -> dict[int, Block]:
        """Return the blocks of the events.

        Raises ChainError if the chain was reorganised since the events were read.
        """
        numbers = sorted({event.block for event in events} | {stop.number})
        blocks = {block.number: block for block in await self._chain.blocks(numbers) if block is not None}
        hashes = {(event.block, event.block_hash) for event in events} | {(stop.number, stop.hash)}
        if any(number not in blocks or blocks[number].hash != known for number, known in hashes):
            raise _went_back()
        return blocks

    async def _block(self, number: int) -> Block:
        (block,) = await self._chain.blocks([number])
        if block is None:
            raise _went_back()
        return block


def _change(event: Event, block: Block) -> JobChange:
    status, cursor = JobStatus(event.args.get("to", JobStatus.PENDING)), str(Cursor.at(block, event.log_index))
    return JobChange(event.job_id, status, datetime_of(block.timestamp), event.tx_hash, cursor)


def _mark(block: Block) -> str:
    return block.hash.removeprefix("0x")[:16].lower()


def _went_back() -> ChainError:
    return ChainError("The chain went back while the changes of jobs were read.")
