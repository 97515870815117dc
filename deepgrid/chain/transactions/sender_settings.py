"""Timeouts, intervals and limits of sending."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """How a sender shares its key, follows its transactions and raises their fees. Times are in seconds."""

    poll_s: float = 0.1  # between two polls of the node for the transactions in flight
    longest_pause_s: float = 2.0  # between two polls while the node does not answer
    lease_wait_s: float = 60.0  # for the lease of the key
    hold_s: float = 5.0  # a sender without a break offers the lease to other processes this often,
    let_in_s: float = 0.2  # for this long
    watch_s: float = 1.0  # an idle sender polls for dropped transactions this often
    margin_percent: int = 30  # added to estimates: they use the latest block, and the next one may cost more
    stall_s: float = 5.0  # without progress for this long, everything in flight is sent again
    lost_s: float = 15.0  # a used nonce without a receipt of ours for this long belongs to another program
    settled_s: float = 60.0  # a transaction that was mined this long ago counts as final
    patience_blocks: int = 6  # a transaction that this many blocks pass over gets a higher fee
    highest_fee_multiple: int = 16  # the highest fee of a transaction, as a multiple of the current usual fee


DEFAULTS = SenderSettings()
