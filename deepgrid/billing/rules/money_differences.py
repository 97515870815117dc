"""Finds where the contract's settlement, the job's terms and the token's transfers disagree, to the wei."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.billing.columns.claim_record import SETTLED, ClaimRecord
from deepgrid.billing.credits import format_credits
from deepgrid.billing.expected import expected_bill
from deepgrid.billing.rules.kinds import Finding, Kind


def money_findings(claim: ClaimRecord, strays_wei: int) -> Iterator[Finding]:
    """Yield the differences in credits of one claim. `strays_wei` are credits of the period without a purpose."""
    amounts = claim.amounts
    taken = amounts.deposit + amounts.top_up
    if claim.requested and amounts.locked != taken:
        evidence = _unequal("locked", amounts.locked, "transferred in", taken)
        if 0 < amounts.locked - taken <= strays_wei:
            yield _finding(claim, None, f"{evidence}; the rest can have come through another contract")
        else:
            yield _finding(claim, Kind.DEPOSIT, evidence, abs(amounts.locked - taken))
    if claim.outcome == SETTLED:
        yield from _settlement(claim)


def _settlement(claim: ClaimRecord) -> Iterator[Finding]:
    amounts, job = claim.amounts, claim.job
    assert job is not None
    if claim.settlements > 1:
        evidence = f"the contract settled the job {claim.settlements} times"
        yield _finding(claim, Kind.SETTLED_TWICE, evidence, amounts.paid + amounts.cut)
    terms = expected_bill(job, claim.billed)
    divided = amounts.paid + amounts.cut + amounts.refunded
    checks = [
        (Kind.DIVISION, "locked", amounts.locked, "divided", divided),
        (Kind.TERMS, "to be paid by the terms", terms.paid, "settled", amounts.paid),
        (Kind.TERMS, "the cut by the terms", terms.cut, "settled", amounts.cut),
        (Kind.TRANSFERS, "settled for the provider", amounts.paid, "transferred", amounts.paid_out),
        (Kind.REFUND, "settled for the customer", amounts.refunded, "transferred", amounts.refund_out),
    ]
    for kind, what, one, other_what, other in checks:
        if one != other:
            yield _finding(claim, kind, _unequal(what, one, other_what, other), abs(one - other))


def _unequal(what: str, one: int, other_what: str, other: int) -> str:
    return f"{what}: {format_credits(one)} credits, {other_what}: {format_credits(other)}"


def _finding(claim: ClaimRecord, kind: Kind | None, evidence: str, wei: int = 0) -> Finding:
    return Finding(claim.job_id, claim.claimed_at, kind, evidence, claim.tx, wei)
