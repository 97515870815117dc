"""What the doctors of all roles say about a node that answers."""

from __future__ import annotations

import time

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.node import Block
from deepgrid.findings import Finding, Level

MAX_CLOCK_SKEW_S = 60.0


def judge_head(book: AddressBook, head: Block) -> Finding:
    return Finding("chain", Level.GOOD, f"Chain {book.chain_id} is at block {head.number}.")


def judge_clock(block_time: int) -> Finding:
    """A block may be old on a chain that makes blocks on demand. It is never from the future."""
    ahead_s = block_time - time.time()
    if ahead_s > MAX_CLOCK_SKEW_S:
        return Finding(
            "clock", Level.WARNING, f"The newest block is {ahead_s:.0f} s ahead of this machine's clock.",
            "Run an NTP client.",
        )  # fmt: skip
    return Finding("clock", Level.GOOD, "This machine's clock is not behind the chain's.")
