"""One claim with all that contract, token and Slurm say about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deepgrid.billing.entries import Run, Settlement
from deepgrid.billing.formulas import bill
from deepgrid.lifecycle.job import Job

SETTLED, OPEN, GIVEN_BACK = "settled", "open", "given back"


@dataclass(frozen=True, slots=True)
class Amounts:
    """The credits of a claim in wei: what was locked and how it was divided, and the transfers of the period."""

    locked: int = 0
    brought_forward: int = 0
    paid: int = 0
    cut: int = 0
    refunded: int = 0
    still_locked: int = 0
    deposit: int = 0
    top_up: int = 0
    paid_out: int = 0
    refund_out: int = 0


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """One claim. `outcome` is None if only Slurm knows it, and `job` is None if the chain does not know the job.

    `requested` says whether the job was requested in the ledger's blocks. `settlements` are all of the job. `last` is
    the one of the period. `reported` are minutes that the contract refused to bill.
    """

    job_id: int
    claimed_at: int
    outcome: str | None
    job: Job | None
    amounts: Amounts
    requested: bool = False
    settlements: int = 0
    last: Settlement | None = None
    runs: tuple[Run, ...] = ()
    reported: int | None = None
    expected: int = 0
    tx: str = ""

    @property
    def billed(self) -> int:
        return self.last.billed_minutes if self.last is not None else 0

    @property
    def provider(self) -> str:
        """The provider that was paid, or the job's provider now."""
        return self.last.provider if self.last is not None else (self.job and self.job.provider) or ""

    @property
    def status(self) -> str:
        """The state in words, as of the period's end."""
        if self.job is None:
            return ""
        return "settled later" if self.outcome == OPEN and self.job.status.cold else self.job.status.words

    @property
    def run(self) -> Run | None:
        """The first run that began; otherwise any run, as a run that never started."""
        begun = starts(self.runs)
        return begun[0] if begun else replace(self.runs[0], started_at=None) if self.runs else None

    def cost_of(self, minutes: int) -> int:
        """Return the wei that this many minutes cost the customer."""
        if self.job is None:
            return 0
        return bill(max(0, minutes), self.job.rate_wei_per_minute, self.job.locked_wei, 0).cost


def starts(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that began, in this order. A start that the script refused does not count."""
    begun = (run for run in runs if run.started_at is not None and not run.guarded)
    return sorted(begun, key=lambda run: run.started_at or 0)
