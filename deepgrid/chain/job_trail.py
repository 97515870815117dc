"""The trail of a job on chain: every transaction that changed its state or its credits, with the place of its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.billing.entries import Purpose, Settlement, Transfer
from deepgrid.chain.client import Chain
from deepgrid.chain.history import first_block_at, settlement_in
from deepgrid.chain.ledger import batches, read_logs, read_transfers
from deepgrid.chain.node.contract import Event
from deepgrid.chain.purposes import with_own_deposits
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

MOST_TOP_UPS = 50  # in a shortened trail, the newest ones
NAMES = ("JobCreated", "JobTransitionEvent", "JobSettledEvent", "CancelReleasedEvent")
STEPS = {
    JobStatus.PENDING: "given back",
    JobStatus.META_SCHEDULED: "assigned",
    JobStatus.SCHEDULED: "claimed",
    JobStatus.RUNNING: "reported running",
}
TOP_UP = "topped up"


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """One log of a job's life. `wei` is what moved to the contract, or back to the customer before the end.

    A settlement's `wei` is its cost. `at` is unix seconds.
    """

    what: str
    at: int
    block: int
    log_index: int
    tx_hash: str
    wei: int = 0


@dataclass(frozen=True, slots=True)
class Trail:
    """All entries of one job, in order, and its settlement if it is over."""

    entries: tuple[TrailEntry, ...]
    settlement: Settlement | None = None

    @property
    def top_ups(self) -> tuple[TrailEntry, ...]:
        """The entries of its top-ups."""
        return tuple(one for one in self.entries if one.what == TOP_UP)

    @property
    def top_ups_wei(self) -> int:
        """The credits in wei of all top-ups."""
        return sum(one.wei for one in self.top_ups)

    @property
    def shortened(self) -> tuple[TrailEntry, ...]:
        """The entries that a receipt lists: an end to the number of top-ups and changes, the newest are kept."""
        left_out = set(self.top_ups[:-MOST_TOP_UPS])
        kept = [one for one in self.entries if one not in left_out]
        return (*kept[:1], *kept[1:][-(MOST_TOP_UPS + 40) :])


async def read_trails(chain: Chain, jobs: Sequence[Job]) -> dict[int, Trail]:
    """Return the trails of these jobs by their ids, from one pass over the blocks from the first request on.

    Raises ChainError, which is transient if the chain went back meanwhile.
    """
    if not jobs:
        return {}
    head = await chain.head()
    begun, lowest = min(job.submitted_at for job in jobs), min(chain.book.first_block, head.number)
    first = await first_block_at(chain, begun, lowest, head.number)
    last = head.number if any(job.status.hot for job in jobs) else await _last_block(chain, jobs, first, head.number)
    events, moved = await read_logs(chain, first, last, names=NAMES)
    by_id = {job.id: job for job in jobs}
    transfers = with_own_deposits(await read_transfers(chain, events, moved), events, by_id)
    wanted = by_id.keys()
    own = [event for event in events if event.job_id in wanted]
    paid = [one for one in transfers if one.job_id in wanted]
    times = await _times(chain, {event.block for event in own} | {one.block for one in paid})
    ends = {one.job_id: settlement_in(one, times[one.block]) for one in own if one.name == "JobSettledEvent"}
    return {job_id: Trail(_entries(job_id, own, paid, times), ends.get(job_id)) for job_id in wanted}


async def _last_block(chain: Chain, jobs: Sequence[Job], low: int, high: int) -> int:
    """Return the first block after the last end: a development chain has several blocks of the same second."""
    return await first_block_at(chain, max(job.ended_at for job in jobs) + 1, low, high)


async def _times(chain: Chain, numbers: set[int]) -> dict[int, int]:
    blocks = [block for some in batches(sorted(numbers)) for block in await chain.blocks(some)]
    if None in blocks:
        raise ChainError("The chain went back while a job's transactions were read.")
    return {block.number: block.timestamp for block in blocks if block is not None}


def _entries(
    job_id: int, events: Sequence[Event], transfers: Sequence[Transfer], times: dict[int, int]
) -> tuple[TrailEntry, ...]:
    deposit = sum(one.wei for one in transfers if one.job_id == job_id and one.purpose is Purpose.DEPOSIT)
    found: list[TrailEntry] = []
    for event in events:
        what, wei = _meaning(event, deposit)
        if event.job_id == job_id and what:
            found.append(TrailEntry(what, times[event.block], event.block, event.log_index, event.tx_hash, wei))
    found += [
        TrailEntry(TOP_UP, times[one.block], one.block, one.log_index, one.tx_hash, one.wei)
        for one in transfers
        if one.job_id == job_id and one.purpose is Purpose.TOP_UP
    ]
    return tuple(sorted(found, key=lambda entry: (entry.block, entry.log_index)))


def _meaning(event: Event, deposit_wei: int) -> tuple[str, int]:
    """Return the meaning of an event, and its credits in wei. The words are empty if another event has that meaning."""
    match event.name:
        case "JobCreated":
            return "requested", deposit_wei
        case "JobSettledEvent":
            return "settled", event.args["paid"] + event.args["cut"]
        case "CancelReleasedEvent":
            return "released", event.args["released"]
    return STEPS.get(JobStatus(event.args["to"]), ""), 0
