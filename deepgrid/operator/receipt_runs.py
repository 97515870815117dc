"""Runs that providers signed in receipts. The operator has no Slurm, so its books compare bills with these.

A provider can sign what is not so. But it signs for each job when the job ends, and its customer keeps the receipt. A
job without a receipt proves nothing: its provider may be about to sign it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from deepgrid.billing.entries import Ledger, Run, Runs, Settlement
from deepgrid.errors import InputError, NotFound, ServiceError
from deepgrid.services.receipts import Contents, read_receipt
from deepgrid.slurm.commands.tres import allocation

RECEIPTS_AT_ONCE = 16
SIGNED = "receipts that providers signed"
UNREAD = "no receipts, as the services do not answer"


class Receipts(Protocol):
    """Where receipts are kept."""

    async def receipt(self, job_id: int) -> bytes:
        """Return the receipt of a job. Raises NotFound if there is none, ServiceError if nothing answers."""


async def read_receipt_runs(receipts: Receipts, ledger: Ledger) -> Runs:
    """Return the runs in the receipts of the jobs that were settled in the period.

    Without an answer of the services there are none: the books of the chain do not wait for them.
    """
    ended = [one for one in ledger.settlements if ledger.in_period(one.block)]
    found: list[Run] = []
    try:
        for first in range(0, len(ended), RECEIPTS_AT_ONCE):
            some = ended[first : first + RECEIPTS_AT_ONCE]
            found += [run for run in await _read(receipts, some) if run is not None]
    except ServiceError:
        return Runs((), complete=False, source=UNREAD, partial=True)
    return Runs(tuple(found), complete=False, source=SIGNED, partial=True)


async def _read(receipts: Receipts, ended: Sequence[Settlement]) -> list[Run | None]:
    return await asyncio.gather(*(_run(receipts, one) for one in ended))


async def _run(receipts: Receipts, end: Settlement) -> Run | None:
    """Return the run in the receipt of a job, None without a receipt that its provider signed."""
    try:
        contents = read_receipt(await receipts.receipt(end.job_id)).receipt
    except (NotFound, InputError):
        return None
    is_its_own = (contents.job_id, contents.provider) == (end.job_id, end.provider)
    return run_of(contents) if is_its_own and contents.evidence.slurm_id is not None else None


def run_of(contents: Contents) -> Run:
    """Return the run that a receipt is about."""
    seen = contents.evidence
    return Run(
        job_id=contents.job_id,
        claimed_at=contents.times.claimed_at,
        slurm_id=seen.slurm_id or 0,
        state=seen.state,
        started_at=seen.started_at,
        ended_at=seen.ended_at,
        exit_status=seen.exit_status,
        ran_s=None if seen.started_at is None or seen.ended_at is None else seen.run_s,
        given=allocation(seen.tres, "", counts_gpus=False),
    )
