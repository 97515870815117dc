"""Entries of the books, as plain values: claims, settlements and transfers from the chain, runs from Slurm.

Money is an int of wei, times are unix seconds. The chain's entries reach from the start of the period to the
block at which the jobs were read. So the state at the period's end can be derived from the state now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from deepgrid.lifecycle.job import Job


@dataclass(frozen=True, slots=True)
class Span:
    """A period of time in unix seconds. `until` is not part of it."""

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """The division of a deposit: paid + cut + refunded = the amount that the job held at its end, in wei.

    `at` in unix seconds.
    """

    job_id: int
    provider: str
    customer: str
    billed_minutes: int
    paid_wei: int
    cut_wei: int
    refunded_wei: int
    at: int
    block: int
    tx_hash: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A provider claimed a job."""

    job_id: int
    provider: str
    at: int
    block: int
    tx_hash: str


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A job left its provider and is pending again: refused, or taken back."""

    job_id: int
    provider: str
    block: int
    tx_hash: str


class Purpose(StrEnum):
    """Purpose of a transfer of credits to or from the contract."""

    DEPOSIT = "deposit"
    TOP_UP = "top-up"
    PAID = "paid"
    REFUND = "refund"
    RELEASE = "release"  # to the customer, before the end of a job whose cancel request was not answered in time
    WITHDRAWAL = "withdrawal"  # of its cut, by the platform
    STRAY = "stray"  # sent to the contract outside of any call of it


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of credits to or from the contract. `job_id` is None if it belongs to no job."""

    purpose: Purpose
    job_id: int | None
    payer: str
    payee: str
    wei: int
    block: int
    tx_hash: str
    log_index: int = 0


@dataclass(frozen=True)
class Ledger:
    """The chain's entries of the blocks `first_block` to `last_block` (the period), and on to `head_block`.

    `jobs` and the figures of the contract are as of `head_block`.
    """

    first_block: int
    last_block: int
    head_block: int
    requested: dict[int, int]  # job -> block of its request
    claims: tuple[Claim, ...]
    given_back: tuple[GivenBack, ...]
    settlements: tuple[Settlement, ...]
    transfers: tuple[Transfer, ...]
    reported_too_much: dict[int, int]  # job -> minutes, not billed
    jobs: dict[int, Job]
    balance_wei: int
    platform_cut_wei: int
    older_strays_wei: int = 0

    def in_period(self, block: int) -> bool:
        """Return whether a block belongs to the period."""
        return self.first_block <= block <= self.last_block

    def part(self, first_block: int, last_block: int) -> Ledger:
        """Return the ledger of a shorter period: as if it had been read from `first_block` on."""
        return replace(
            self,
            first_block=first_block,
            last_block=last_block,
            requested={job_id: block for job_id, block in self.requested.items() if block >= first_block},
            claims=tuple(one for one in self.claims if one.block >= first_block),
            given_back=tuple(one for one in self.given_back if one.block >= first_block),
            settlements=tuple(one for one in self.settlements if one.block >= first_block),
            transfers=tuple(one for one in self.transfers if one.block >= first_block),
        )

    @cached_property
    def top_ups(self) -> dict[int, list[Transfer]]:
        """Top-ups by job."""
        return self._by_job(Purpose.TOP_UP)

    @cached_property
    def releases(self) -> dict[int, list[Transfer]]:
        """Releases by job."""
        return self._by_job(Purpose.RELEASE)

    def _by_job(self, purpose: Purpose) -> dict[int, list[Transfer]]:
        found: dict[int, list[Transfer]] = {}
        for one in self.transfers:
            if one.purpose is purpose and one.job_id is not None:
                found.setdefault(one.job_id, []).append(one)
        return found

    @cached_property
    def strays_wei(self) -> int:
        """Credits that were sent to the contract since the start of the period, for no known purpose."""
        return sum(one.wei for one in self.transfers if one.purpose is Purpose.STRAY)

    @cached_property
    def claim_blocks(self) -> dict[tuple[int, int], int]:
        """Block of each claim, by job and time."""
        return {(claim.job_id, claim.at): claim.block for claim in self.claims}


@dataclass(frozen=True, slots=True)
class Allocation:
    """The resources that Slurm gave to a job, by its accounting. A figure is None where accounting does not keep it.

    `wanted_nodes` is the number of nodes that the submission asked for.
    """

    cpus: int | None = None
    nodes: int | None = None
    mem_mb: int | None = None
    gpus: int | None = None
    wanted_nodes: int | None = None


NOT_ACCOUNTED = Allocation()


@dataclass(frozen=True, slots=True)
class Run:
    """A Slurm job of one claim. `started_at` is None if it never started.

    `guarded`: the script refused to start, because it had started before or the claim was over.
    `ran_s`: seconds that it ran in all; None if its start and end say the same.
    `given`: the resources that it got.
    """

    job_id: int
    claimed_at: int
    slurm_id: int
    state: str
    started_at: int | None
    ended_at: int | None
    exit_status: int = 0
    guarded: bool = False
    ran_s: int | None = None
    given: Allocation = NOT_ACCOUNTED


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A Slurm job that ran in a customer's account without a claim. `cpu_s` is its CPU time, if known."""

    slurm_id: int
    account: str
    started_at: int | None
    ended_at: int | None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Runs:
    """The grid's Slurm jobs at one cluster. If `complete`, a claim without a run here never ran.

    If `late`, accounting lacks records that the controller still has to send: the next run reads them. `foreign` are
    jobs of customers' accounts in the period that belong to no claim. If `partial`, these are the runs of some jobs, at
    any cluster.
    """

    runs: tuple[Run, ...] = ()
    complete: bool = True
    source: str = "Slurm's accounting"
    foreign: tuple[ForeignJob, ...] = ()
    late: bool = False
    partial: bool = False
