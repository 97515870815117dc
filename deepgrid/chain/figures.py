"""The figures of the contract that bind new jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """Figures of the contract: least deposit (wei), platform's cut (percent), times (minutes)."""

    minimum_wei: int
    cut_percent: int
    claim_timeout_minutes: int
    cancellation_fee_minutes: int
    top_up_slice_minutes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The platform's cut in percent, and the one of which notice was given.

    That one can be in force from unix second `next_from` on; both are 0 when no notice is open.
    """

    percent: int
    next_percent: int
    next_from: int
