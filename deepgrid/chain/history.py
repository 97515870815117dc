"""The history of one job from the contract's events, and the division of its deposit."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.billing.entries import Settlement
from deepgrid.chain.node.contract import Event
from deepgrid.chain.reader import Reader
from deepgrid.errors import ChainError
from deepgrid.lifecycle.states import JobStatus

BLOCKS_PER_QUERY = 2000


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a job's state; `before` is None for its request. `at` is the block's time in unix seconds."""

    before: JobStatus | None
    after: JobStatus
    at: int
    block: int
    tx_hash: str

    @classmethod
    def of(cls, event: Event, at: int) -> Transition:
        before = JobStatus(event.args["from"]) if "from" in event.args else None
        after = JobStatus(event.args.get("to", JobStatus.PENDING))
        return cls(before, after, at, event.block, event.tx_hash)


async def history(chain: Reader, job_id: int, times: dict[str, int]) -> list[Transition]:
    """Return transitions of the job whose struct JobTime is `times`.

    Events have no indexed fields, so this reads all blocks from the job's request to its last change.
    """
    last = times["blockNumberStateChange"]
    first = await first_block_at(chain, times["submit"], chain.book.first_block, last)
    events: list[Event] = []
    for start in range(first, last + 1, BLOCKS_PER_QUERY):
        names = ("NewJobRequestEvent", "JobTransitionEvent")
        events += await chain.events(start, min(last, start + BLOCKS_PER_QUERY - 1), names)
    own = [event for event in events if event.job_id == job_id]
    time_of = await _times(chain, own)
    return [Transition.of(event, time_of[event.block]) for event in own]


async def settlement(chain: Reader, job_id: int, times: dict[str, int]) -> Settlement | None:
    """Return the settlement of the job whose struct JobTime is `times`: the end is a job's last change."""
    if times["end"] == 0:
        return None
    block = times["blockNumberStateChange"]
    events = await chain.events(block, block, ("JobSettledEvent",))
    own = next((event for event in events if event.job_id == job_id), None)
    if own is None:
        raise ChainError(f"The node does not show the settlement of job {job_id} in block {block}.")
    return settlement_in(own, times["end"])


def settlement_in(event: Event, at: int) -> Settlement:
    """Return the settlement in a JobSettledEvent of the time `at`."""
    args = event.args
    return Settlement(
        job_id=event.job_id, provider=args["provider"], customer=args["customer"],
        billed_minutes=args["billedMinutes"], paid_wei=args["paid"], cut_wei=args["cut"],
        refunded_wei=args["refunded"], at=at, block=event.block, tx_hash=event.tx_hash,
    )  # fmt: skip


async def _times(chain: Reader, events: list[Event]) -> dict[int, int]:
    numbers = sorted({event.block for event in events})
    blocks = await chain.blocks(numbers)
    if None in blocks:
        raise ChainError("The chain went back while a job's history was read.")
    return {block.number: block.timestamp for block in blocks if block is not None}


async def first_block_at(chain: Reader, time: int, low: int, high: int) -> int:
    """Return the number of the first block from `low` to `high` that is not older than `time`."""
    while low < high:
        middle = (low + high) // 2
        (block,) = await chain.blocks([middle])
        if block is None or block.timestamp < time:  # None: the node no longer keeps this block
            low = middle + 1
        else:
            high = middle
    return low
