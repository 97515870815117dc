"""Adds up books: each wei that a job had locked must be paid, cut, refunded or still locked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepgrid.billing.columns.claims import IS_GIVEN_BACK, OF_SLURM, Claims, Window
from deepgrid.billing.columns.entry_tables import numbers, words
from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Ledger, Purpose
from deepgrid.lifecycle.states import JobStatus

DIVIDED = ("locked", "brought_forward", "paid", "cut", "refunded", "still_locked")


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums in wei: of the jobs in the books, of their transfers, and of the contract's balance now.

    The contract's figures cover the whole grid. `deposits` is None in the books of one provider.
    """

    jobs: int
    brought_forward: int
    taken: int
    locked: int
    paid: int
    cut: int
    refunded: int
    still_locked: int
    paid_out: int
    refund_out: int
    withdrawn: int
    strays: int
    platform_cut: int
    balance: int
    deposits: int | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The contract's figures now, in wei, and credits that were sent to it for no known purpose."""

    balance: int
    platform_cut: int
    strays: int
    older_strays: int

    @classmethod
    def of(cls, ledger: Ledger) -> Contract:
        """Return the figures of a ledger."""
        return cls(ledger.balance_wei, ledger.platform_cut_wei, ledger.strays_wei, ledger.older_strays_wei)


class TotalsOf:
    """Adds up the rows and transfers of any number of windows."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sums: Counter[str] = Counter()

    def add(self, claims: Claims) -> None:
        """Add the rows of a window, and its transfers."""
        sums, window = self._sums, self._window
        counted = (claims.outcome != OF_SLURM) & (claims.outcome != IS_GIVEN_BACK)
        sums["jobs"] += len(np.unique(claims.job_id[counted]))
        for name in (*DIVIDED, "deposit", "top_up", "refund_out"):
            sums[name] += sum(claims.money[name].tolist())
        jobs = claims.tables.jobs
        is_hot = numbers(jobs, "status") <= int(JobStatus.RUNNING)
        held = claims.tables.locked_wei - claims.tables.released_wei
        sums["held"] += sum(held[is_hot].tolist())
        moves = claims.tables.transfers
        block, wei, (purpose, names) = numbers(moves, "block"), claims.tables.moved_wei, words(moves, "purpose")
        inside = (block >= window.first_block) & (block <= window.last_block)
        for code, name in enumerate(names):
            sums[f"moved {name}"] += sum(wei[inside & (purpose == code)].tolist())
            if name == Purpose.PAID and window.provider is not None:
                payee, payees = words(moves, "payee")
                mine = np.array([one == window.provider for one in payees], dtype=bool)[payee]
                sums["paid to me"] += sum(wei[inside & (purpose == code) & mine].tolist())

    def totals(self, contract: Contract) -> Totals:
        """Return the sums. One provider's books have only the transfers of its jobs."""
        sums = self._sums
        moved = {purpose: sums[f"moved {purpose}"] for purpose in Purpose}
        is_whole = self._window.provider is None
        taken, paid_out, refund_out = sums["deposit"] + sums["top_up"], sums["paid to me"], sums["refund_out"]
        if is_whole:
            taken, paid_out = moved[Purpose.DEPOSIT] + moved[Purpose.TOP_UP], moved[Purpose.PAID]
            refund_out = moved[Purpose.REFUND] + moved[Purpose.RELEASE]
        return Totals(
            jobs=sums["jobs"],
            **{name: sums[name] for name in DIVIDED},
            taken=taken,
            paid_out=paid_out,
            refund_out=refund_out,
            withdrawn=moved[Purpose.WITHDRAWAL],
            strays=moved[Purpose.STRAY],
            platform_cut=contract.platform_cut,
            balance=contract.balance,
            deposits=sums["held"] if is_whole else None,
        )


def imbalances(totals: Totals, contract: Contract) -> Iterator[str]:
    """Yield a sentence for each sum that does not hold."""
    divided = totals.paid + totals.cut + totals.refunded + totals.still_locked
    brought, strays = totals.brought_forward + totals.taken, contract.strays
    checks = [
        ("Locked", totals.locked, "paid, cut, refunded and still locked", divided, 0),
        ("Locked", totals.locked, "brought forward and transferred in", brought, strays),
        ("Settled for providers", totals.paid, "transferred to them", totals.paid_out, 0),
        ("Settled for customers", totals.refunded, "transferred to them", totals.refund_out, 0),
    ]
    for what, one, other_what, other, allowed in checks:
        if not 0 <= one - other <= allowed:
            yield f"{what} {format_credits(one)} credits, {other_what} {format_credits(other)}."
    if totals.deposits is None:
        return
    excess = contract.balance - contract.platform_cut - totals.deposits
    if not 0 <= excess <= strays + contract.older_strays:
        yield (
            f"The contract holds {format_credits(totals.balance)} credits; deposits of hot jobs and the cut are"
            f" {format_credits(totals.deposits + totals.platform_cut)}."
        )
