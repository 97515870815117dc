"""Typed answers of the contracts: settings, queue lengths and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Constants:
    """Settings that apply to new jobs: minimum deposit (wei), platform's cut (percent), times (minutes).

    `report_tolerance_minutes`: a report may exceed the possible time by this much before the contract emits
    BilledTooMuchEvent. The excess is never billed.
    """

    minimum_wei: int
    cut_percent: int
    claim_timeout_minutes: int
    cancellation_fee_minutes: int
    top_up_slice_minutes: int
    report_tolerance_minutes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The platform's cut in percent, and the announced next one.

    The next one can take effect from unix second `next_from` on. Both are 0 when no notice is open.
    """

    percent: int
    next_percent: int
    next_from: int


@dataclass(frozen=True, slots=True)
class Queues:
    """Number of jobs that wait for a provider: to be claimed, to be cancelled, to get more time."""

    claimable: int
    cancelling: int
    topped_up: int


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Numbers of jobs that a provider started, refused, panicked and let time out. Survives its removal."""

    started: int
    refused: int
    panicked: int
    timed_out: int

    @classmethod
    def of(cls, raw: Mapping[str, int]) -> Self:
        """From the struct ProviderRecord."""
        return cls(raw["started"], raw["refused"], raw["panicked"], raw["timedOut"])
