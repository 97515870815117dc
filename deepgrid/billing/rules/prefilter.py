"""Chooses the claims that can have a finding, by comparing whole columns.

A claim that is not chosen agrees in every figure, so no rule has anything to say about it. A chosen one may still be in
order: the rules decide (`differences`). A test compares this with the rules applied to every claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from deepgrid.billing.columns.claims import IS_OPEN, IS_SETTLED, Claims
from deepgrid.billing.columns.entry_tables import MISSING, flags, numbers, words
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES
from deepgrid.billing.rules.differences import CLOCKS_S, Side
from deepgrid.lifecycle.states import JobStatus

Array = np.ndarray[Any, Any]
# What each end looks like in Slurm without interference. Other pairs are left to the rules.
_PLAIN_ENDS = {
    JobStatus.FINISHED: "COMPLETED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELLED: "CANCELLED",
    JobStatus.OUT_OF_CREDITS: "TIMEOUT",
}


def doubtful(claims: Claims, side: Side, reported: dict[int, int]) -> Array:
    """Return the rows that the rules must look at."""
    found = _money(claims)
    if side.has_slurm:
        found |= claims.runs.starts > 1
        found |= (claims.outcome == IS_SETTLED) & _doubtful_settled(claims, side)
        found |= (claims.outcome == IS_OPEN) & _open(claims)
        found |= (claims.outcome != IS_SETTLED) & (claims.outcome != IS_OPEN) & _others(claims, side)
        if reported:
            found |= (claims.outcome == IS_SETTLED) & np.isin(claims.job_id, list(reported))
    return np.flatnonzero(found)


def lacks_runs(claims: Claims) -> bool:
    """Return whether a claim that was billed or runs on chain has no run in Slurm.

    Late accounting may still show it.
    """
    billed = (claims.outcome == IS_SETTLED) & (claims.billed > 0)
    running = (claims.outcome == IS_OPEN) & (claims.of_job("status") == int(JobStatus.RUNNING))
    return bool(np.any((billed | running) & ~claims.runs.began))


def shared_runs(runs: pa.Table) -> frozenset[tuple[int, int]]:
    """Return the runs, as Slurm id and start, that belong to several claims."""
    begins = numbers(runs, "started_at")
    begun = np.flatnonzero((begins != MISSING) & ~flags(runs, "guarded"))
    slurm_id, begins = numbers(runs, "slurm_id")[begun], begins[begun]
    job_id, claimed_at = numbers(runs, "job_id")[begun], numbers(runs, "claimed_at")[begun]
    order = np.lexsort((begins, slurm_id))
    same = (np.diff(slurm_id[order]) == 0) & (np.diff(begins[order]) == 0)
    same &= (np.diff(job_id[order]) != 0) | (np.diff(claimed_at[order]) != 0)
    again = order[:-1][same]
    return frozenset(zip(slurm_id[again].tolist(), begins[again].tolist(), strict=True))


def _money(claims: Claims) -> Array:
    money, jobs = claims.money, claims.tables.jobs
    requested = claims.of_job("requested_in") != MISSING
    kept = (claims.outcome == IS_SETTLED) | (claims.outcome == IS_OPEN)
    found = kept & requested & _differ(money["locked"], money["deposit"] + money["top_up"])
    at = np.maximum(claims.job, 0)
    if not len(jobs):
        return np.asarray(found)
    locked, rate = claims.tables.locked_wei[at], claims.tables.rate_wei[at]
    cost = np.minimum(claims.billed.astype(object) * rate, locked)
    cut = cost * claims.of_job("cut_percent").astype(object) // 100
    wrong = claims.billed > MAX_LIMIT_MINUTES
    wrong |= claims.sums.settlements[at] > 1
    wrong |= _differ(money["locked"], money["paid"] + money["cut"] + money["refunded"])
    wrong |= _differ(money["paid"], cost - cut) | _differ(money["cut"], cut)
    wrong |= _differ(money["paid"], money["paid_out"]) | _differ(money["refunded"], money["refund_out"])
    return np.asarray(found | ((claims.outcome == IS_SETTLED) & wrong))


def _doubtful_settled(claims: Claims, side: Side) -> Array:
    """Return settled rows whose bill, end or resources are not exactly as Slurm shows them."""
    of_run = claims.runs.first
    found = claims.billed != claims.expected
    found |= ~claims.runs.began & (claims.billed > 0)
    ends, begins = _of_run(claims, "ended_at"), _of_run(claims, "started_at")
    settled_at = claims.of_job("ended_at")
    found |= claims.runs.began & ((ends == MISSING) | (np.maximum(ends, begins) > settled_at + side.grace_s))
    found |= claims.runs.began & (begins < claims.claimed_at - CLOCKS_S)
    found |= (claims.of_job("status") == int(JobStatus.PANICKED)) & claims.runs.began
    found |= claims.runs.began & (_of_run(claims, "exit_status") != claims.of_job("exit_status"))
    found |= claims.runs.began & ~_plain_end(claims)
    if side.shared:
        ids = _of_run(claims, "slurm_id")
        found |= claims.runs.began & np.isin(ids, [slurm_id for slurm_id, _ in side.shared])
    return np.asarray(found | ((of_run >= 0) & _gave_less(claims)))


def _plain_end(claims: Claims) -> Array:
    status = claims.of_job("status")
    codes, names = words(claims.tables.runs, "state")
    state = np.where(claims.runs.first >= 0, codes[claims.runs.first], -1) if len(codes) else np.full(len(status), -1)
    plain = np.zeros(len(status), dtype=bool)
    for end, word in _PLAIN_ENDS.items():
        if word in names:
            plain |= (status == int(end)) & (state == names.index(word))
    return plain


def _gave_less(claims: Claims) -> Array:
    cpus = claims.of_job("ntasks") * claims.of_job("cpus_per_task")
    less = np.zeros(len(cpus), dtype=bool)
    for name, sold in (
        ("cpus", cpus),
        ("nodes", _of_run(claims, "wanted_nodes")),
        ("gpus", claims.of_job("gpus")),
        ("mem_mb", cpus * claims.of_job("mem_per_cpu_mb")),
    ):
        have = _of_run(claims, name)
        less |= (have != MISSING) & (have < sold)
    return less


def _open(claims: Claims) -> Array:
    is_running = claims.of_job("status") == int(JobStatus.RUNNING)
    return np.asarray((_of_run(claims, "ended_at") != MISSING) | (is_running & ~claims.runs.began))


def _others(claims: Claims, side: Side) -> Array:
    begins, ends = _of_run(claims, "started_at"), _of_run(claims, "ended_at")
    inside = (begins < side.span.until) & ((ends == MISSING) | (ends >= side.span.since - side.late_s))
    is_cold = claims.of_job("status") > int(JobStatus.RUNNING)
    same_claim = claims.of_job("claimed_at") == claims.claimed_at
    late = (ends == MISSING) | (np.maximum(ends, begins) > claims.of_job("ended_at") + side.grace_s)
    is_over = (claims.job >= 0) & is_cold & same_claim & (claims.given_back < 0) & ~late
    return np.asarray(claims.runs.began & inside & ~is_over)


def _of_run(claims: Claims, name: str) -> Array:
    values, first = numbers(claims.tables.runs, name), claims.runs.first
    if not len(values):
        return np.full(len(first), MISSING)
    return np.where(first >= 0, values[first], MISSING)


def _differ(one: Array, other: Array) -> Array:
    return np.asarray(one != other, dtype=bool)
