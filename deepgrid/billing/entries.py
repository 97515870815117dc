"""What books are made of, as plain values: from the chain (claims, settlements, transfers) and from Slurm (runs).

Money is an int of wei, times are unix seconds. The chain's entries reach from the period's beginning to the
block at which the jobs themselves were read, so that the state at the period's end can be told from the state now.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from deepgrid.lifecycle.job import Job


@dataclass(frozen=True, slots=True)
class Span:
    """A period of time, unix seconds, without its end."""

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a job's deposit was divided: paid + cut + refunded = locked, all in wei. `at` in unix seconds."""

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
    """A provider took a job."""

    job_id: int
    provider: str
    at: int
    block: int
    tx_hash: str


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A job left its provider and waits for another one: refused, or taken back."""

    job_id: int
    provider: str
    block: int
    tx_hash: str


class Purpose(StrEnum):
    """Why credits went to the contract or left it."""

    DEPOSIT = "deposit"
    TOP_UP = "top-up"
    PAID = "paid"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"  # by the platform, of its cut
    STRAY = "stray"  # came to the contract, and no call of it says what for


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of credits to or from the contract; `job_id` is None for what belongs to no job."""

    purpose: Purpose
    job_id: int | None
    payer: str
    payee: str
    wei: int
    block: int
    tx_hash: str


@dataclass(frozen=True)
class Ledger:
    """What the chain says of the blocks `first_block` to `last_block` (the period) and on to `head_block`.

    `jobs` are as of `head_block`, as are the figures of the contract.
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
    cancellation_fee_minutes: int
    claim_timeout_minutes: int
    balance_wei: int
    platform_cut_wei: int
    older_strays_wei: int = 0

    def in_period(self, block: int) -> bool:
        """Whether a block belongs to the period."""
        return self.first_block <= block <= self.last_block

    @cached_property
    def top_ups(self) -> dict[int, list[Transfer]]:
        """Top-ups by job."""
        found: dict[int, list[Transfer]] = {}
        for one in self.transfers:
            if one.purpose is Purpose.TOP_UP and one.job_id is not None:
                found.setdefault(one.job_id, []).append(one)
        return found

    @cached_property
    def strays_wei(self) -> int:
        """Credits that came to the contract since the period began, and of which nothing says what for."""
        return sum(one.wei for one in self.transfers if one.purpose is Purpose.STRAY)

    @cached_property
    def claim_blocks(self) -> dict[tuple[int, int], int]:
        """Blocks of the claims, by job and time."""
        return {(claim.job_id, claim.at): claim.block for claim in self.claims}


@dataclass(frozen=True, slots=True)
class Run:
    """A job at Slurm, of one claim. `started_at` is None for one that never started.

    `guarded`: the script refused to start, as it had started before or the claim was over. `ran_s` is for how many
    seconds it ran in all, None where its start and end say that.
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


@dataclass(frozen=True, slots=True)
class ForeignJob:
    """A job at Slurm that ran in a customer's account and belongs to no claim; `cpu_s` is the CPU time, if known."""

    slurm_id: int
    account: str
    started_at: int | None
    ended_at: int | None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Runs:
    """The jobs of this grid at one cluster. `complete` says that a claim without a run here had none.

    `foreign` are the jobs of customers' accounts in the period that are no claim's.
    """

    runs: tuple[Run, ...] = ()
    complete: bool = True
    source: str = "Slurm's accounting"
    foreign: tuple[ForeignJob, ...] = ()
