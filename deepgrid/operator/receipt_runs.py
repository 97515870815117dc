"""Runs that providers signed in receipts. The operator has no Slurm, so its books compare bills with these.

A provider can sign what is not so. But it signs for each job when the job ends, and its customer keeps the receipt. A
job without a receipt proves nothing: its provider may be about to sign it.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Protocol

from deepgrid.billing.entries import Ledger, Run, Runs, Settlement
from deepgrid.errors import InputError, NotFound, ServiceError
from deepgrid.services.receipts import Contents, read_receipt
from deepgrid.slurm.commands.tres import allocation

RECEIPTS_AT_ONCE = 16
SIGNED = "receipts that providers signed"
UNREAD = "no receipts of {unread} of {jobs} jobs, as the services do not answer; the next run reads them"
PATIENCE_S = 900.0  # for services that ask to be asked later


class Receipts(Protocol):
    """Where receipts are kept."""

    async def receipt(self, job_id: int) -> bytes:
        """Return the receipt of a job. Raises NotFound if there is none, ServiceError if nothing answers."""


async def read_receipt_runs(receipts: Receipts, ledger: Ledger) -> Runs:
    """Return the runs in the receipts of the jobs that were settled in the period.

    The books of the chain do not wait for services that do not answer: the runs are `late` then. Raises AccessDenied.
    """
    ended = [one for one in ledger.settlements if ledger.in_period(one.block)]
    deadline = time.monotonic() + PATIENCE_S
    found: list[Run | None] = []
    unread = 0
    for first in range(0, len(ended), RECEIPTS_AT_ONCE):
        some = ended[first : first + RECEIPTS_AT_ONCE]
        answers = await asyncio.gather(*(_run(receipts, one, deadline) for one in some), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, ServiceError) and answer.transient:
                unread += 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.append(answer)
        if unread == len(some):  # nothing answers: the others need not wait for it
            unread = len(ended) - len(found)
            break
    source = UNREAD.format(unread=unread, jobs=len(ended)) if unread else SIGNED
    read = tuple(run for run in found if run is not None)
    return Runs(read, complete=False, source=source, late=unread > 0, partial=True)


async def _run(receipts: Receipts, end: Settlement, deadline: float) -> Run | None:
    """Return the run in the receipt of a job, None without a receipt that its provider signed."""
    try:
        contents = read_receipt(await _patiently(receipts, end.job_id, deadline)).receipt
    except (NotFound, InputError):
        return None
    is_its_own = (contents.job_id, contents.provider) == (end.job_id, end.provider)
    return run_of(contents) if is_its_own and contents.evidence.slurm_id is not None else None


async def _patiently(receipts: Receipts, job_id: int, deadline: float) -> bytes:
    """Return the receipt of a job, asked for again while the services ask for that, until the deadline."""
    while True:
        try:
            return await receipts.receipt(job_id)
        except ServiceError as error:
            pause_s = error.asked_pause_s
            if pause_s is None or time.monotonic() + pause_s > deadline:
                raise
        await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))  # jitter


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
