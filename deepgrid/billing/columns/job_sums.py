"""Adds up the transfers and settlements of each job, exact to the wei."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deepgrid.billing.columns.entry_tables import MISSING, EntryTables, numbers, words
from deepgrid.billing.entries import Purpose

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class JobSums:
    """Figures of each job, in the order of the table of jobs.

    `locked` are the wei that it had locked by the period's end, or brought into the period. Earlier releases do not
    count. `released` came back in the period before the job's end. `settlements` counts the settlements of all blocks.
    """

    locked: Array
    brought_forward: Array
    released: Array
    deposit: Array
    top_up: Array
    paid_out: Array
    refund_out: Array
    settlements: Array


def job_sums(tables: EntryTables, first_block: int, last_block: int) -> JobSums:
    """Return the sums over the blocks of the period."""
    jobs, moves = tables.jobs, tables.transfers
    ids = numbers(jobs, "id")
    at, wei, block = match(ids, numbers(moves, "job_id")), tables.moved_wei, numbers(moves, "block")
    purposes, names = words(moves, "purpose")
    inside, later = (block >= first_block) & (block <= last_block), block > last_block

    def total(purpose: Purpose, chosen: Array) -> Array:
        code = names.index(purpose) if purpose in names else MISSING
        mask = (purposes == code) & chosen & (at >= 0)
        sums = np.zeros(len(ids), dtype=object)
        np.add.at(sums, at[mask], wei[mask])
        return sums

    anywhere = np.ones(len(at), dtype=bool)
    released, top_up = total(Purpose.RELEASE, inside), total(Purpose.TOP_UP, inside)
    before = tables.released_wei - total(Purpose.RELEASE, anywhere)
    locked = tables.locked_wei - total(Purpose.TOP_UP, later) - before
    is_older = numbers(jobs, "requested_in") == MISSING
    settled = match(ids, numbers(tables.settlements, "job_id"))
    return JobSums(
        locked=locked,
        brought_forward=np.where(is_older, locked - top_up, 0),
        released=released,
        deposit=total(Purpose.DEPOSIT, inside),
        top_up=top_up,
        paid_out=total(Purpose.PAID, inside),
        refund_out=total(Purpose.REFUND, inside) + released,
        settlements=np.bincount(settled[settled >= 0], minlength=len(ids)),
    )


def match(ids: Array, wanted: Array) -> Array:
    """Return the place of each wanted id in the sorted `ids`, or -1."""
    if not len(ids):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
