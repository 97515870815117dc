"""Runs that providers signed in receipts. The operator has no Slurm, so its books compare bills with these.

A provider can sign what is not so. But it signs for each job when the job ends, and its customer keeps the receipt. A
job without a receipt proves nothing: its provider may be about to sign it.

A receipt that the services fail to give while they give others holds the books for a day, and for three runs at least.
Then the books continue without it. Scheduled runs ask for it for 30 days. If it can be read then, their period begins
with its settlement once more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from deepgrid.billing.entries import Ledger, Run, Runs, Settlement
from deepgrid.billing.period import DAY_S
from deepgrid.errors import GridError, InputError, NotFound, ServiceError
from deepgrid.files.private_files import replace_file
from deepgrid.services.receipts import Contents, read_receipt
from deepgrid.slurm.commands.tres import allocation

RECEIPTS_AT_ONCE = 16
SIGNED = "receipts that providers signed"
UNREAD = "no receipts of {unread} of {jobs} jobs, as the services do not answer; {later}"
NEXT, LATER = "the next run reads them", "the books continue, and later runs ask for them"
PATIENCE_S = 900.0  # for services that ask to be asked later
MOST_TRIES = 3
ASKED_FOR_S = 30 * DAY_S


class MissingReceipt(BaseModel):
    """A receipt that failed `tries` times since `since`. Times in unix seconds."""

    settled_at: int
    since: int
    tries: int = 0

    def is_given_up(self, now: int) -> bool:
        """Return whether the books continue without it."""
        return self.tries >= MOST_TRIES and now - self.since >= DAY_S


_FILE = TypeAdapter(dict[int, MissingReceipt])


class MissingReceipts:
    """The file of missing receipts. Raises InputError for a file that is damaged."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._by_job = _FILE.validate_json(file.read_bytes()) if file.exists() else {}
        except ValidationError:
            raise InputError(
                f"The file {file.name} in the folder of the books is damaged.",
                next_step="Delete it. Jobs whose receipts were missing are then not compared again.",
            ) from None

    def __contains__(self, job_id: int) -> bool:
        return job_id in self._by_job

    def note(self, failed: Mapping[int, int], read: Iterable[int], now: int) -> None:
        """Note the jobs whose receipts `failed`, with the times of their settlements, and those that were `read`."""
        left = {job_id: one for job_id, one in self._by_job.items() if now - one.since < ASKED_FOR_S}
        for job_id in read:
            left.pop(job_id, None)
        for job_id, settled_at in failed.items():
            left.setdefault(job_id, MissingReceipt(settled_at=settled_at, since=now)).tries += 1
        self._by_job = left
        if left or self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, _FILE.dump_json(left))

    def given_up(self, now: int) -> Mapping[int, int]:
        """Return the jobs that the books leave out to continue, with the times of their settlements."""
        return {job_id: one.settled_at for job_id, one in self._by_job.items() if one.is_given_up(now)}

    def hold_back(self, job_ids: Collection[int], now: int) -> bool:
        """Return whether the books must wait for one of these receipts."""
        return bool(set(job_ids) - self.given_up(now).keys())


class Receipts(Protocol):
    """Where receipts are kept."""

    async def receipt(self, job_id: int) -> bytes:
        """Return the receipt of a job. Raises NotFound if there is none, ServiceError if nothing answers."""


async def read_receipt_runs(receipts: Receipts, ledger: Ledger, missing: MissingReceipts, now: int) -> Runs:
    """Return the runs in the receipts of the jobs that were settled in the period.

    The books of the chain do not wait for services that do not answer: the runs are `late` then. They are not late for
    a receipt that fails again and again while others are read (`missing`). Raises AccessDenied.
    """
    ended = [one for one in ledger.settlements if ledger.in_period(one.block)]
    # In chance order, those that failed last: some receipts that always fail must not look like an outage.
    asked = sorted(random.sample(ended, len(ended)), key=lambda one: one.job_id in missing)
    deadline = time.monotonic() + PATIENCE_S
    found: dict[int, Run | None] = {}
    for first in range(0, len(asked), RECEIPTS_AT_ONCE):
        some, before = asked[first : first + RECEIPTS_AT_ONCE], len(found)
        answers = await asyncio.gather(*(_run(receipts, one, deadline) for one in some), return_exceptions=True)
        for one, answer in zip(some, answers, strict=True):
            if isinstance(answer, ServiceError) and answer.transient:
                continue
            if isinstance(answer, BaseException):
                raise answer
            found[one.job_id] = answer
        if len(found) == before:  # nothing answers: the others need not wait for it
            break
    unread = {one.job_id: one.at for one in ended if one.job_id not in found}
    if found:
        missing.note(unread, found, now)
    late = missing.hold_back(unread, now)
    source = UNREAD.format(unread=len(unread), jobs=len(ended), later=NEXT if late else LATER) if unread else SIGNED
    runs = tuple(run for _, run in sorted(found.items()) if run is not None)
    return Runs(runs, complete=False, source=source, late=late, partial=True)


async def settlement_to_compare_again(receipts: Receipts, missing: MissingReceipts, now: int) -> int | None:
    """Return the time of the oldest settlement whose receipt was given up and can be read now, None without one."""
    given_up, times = list(missing.given_up(now).items()), list[int]()
    for first in range(0, len(given_up), RECEIPTS_AT_ONCE):
        some = given_up[first : first + RECEIPTS_AT_ONCE]
        answers = await asyncio.gather(*(_is_kept(receipts, job_id) for job_id, _ in some))
        times += [settled_at for (_, settled_at), is_kept in zip(some, answers, strict=True) if is_kept]
    return min(times, default=None)


async def _is_kept(receipts: Receipts, job_id: int) -> bool:
    try:
        await receipts.receipt(job_id)
    except GridError:
        return False
    return True


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
