"""The entries of the books as columns. Each kind of entry is one Arrow table.

Wei are two columns of 64 bits, `NAME_hi` and `NAME_lo`, because no number type of Arrow or Parquet holds all of them.
The contract locks less than 2**96 wei for a job, and keeps rates below 2**128. An amount that needs more than 128 bits
cannot come from it and is refused. Arithmetic is done with Python ints, so no sum or product can overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from deepgrid.billing.entries import Allocation, Ledger, Run, Settlement
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus

Wei = np.ndarray[Any, np.dtype[np.object_]]
LIMB = 2**64
MISSING: int = np.iinfo(np.int64).min  # a number that is absent, in an array
MOST = 2**63 - 1

WORD = pa.dictionary(pa.int32(), pa.string())
COLUMNS: dict[str, dict[str, pa.DataType | None]] = {  # None: an amount in wei
    "jobs": {
        "id": pa.int64(),
        "status": pa.int64(),
        "customer": WORD,
        "provider": WORD,
        "gpus": pa.int64(),
        "mem_per_cpu_mb": pa.int64(),
        "cpus_per_task": pa.int64(),
        "ntasks": pa.int64(),
        "locked_wei": None,
        "final_cost_wei": None,
        "submitted_at": pa.int64(),
        "claimed_at": pa.int64(),
        "started_at": pa.int64(),
        "ended_at": pa.int64(),
        "cancel_requested_at": pa.int64(),
        "has_cancel_request": pa.bool_(),
        "rate_wei_per_minute": None,
        "cut_percent": pa.int64(),
        "fee_minutes": pa.int64(),
        "granted_minutes": pa.int64(),
        "last_error": WORD,
        "exit_status": pa.int64(),
        "released_wei": None,
        "requested_in": pa.int64(),
    },
    "settlements": {
        "job_id": pa.int64(),
        "provider": WORD,
        "customer": WORD,
        "billed_minutes": pa.int64(),
        "paid_wei": None,
        "cut_wei": None,
        "refunded_wei": None,
        "at": pa.int64(),
        "block": pa.int64(),
        "tx_hash": pa.string(),
    },
    "transfers": {"job_id": pa.int64(), "purpose": WORD, "payee": WORD, "wei": None, "block": pa.int64()},
    "claims": {
        "job_id": pa.int64(),
        "provider": WORD,
        "at": pa.int64(),
        "block": pa.int64(),
        "tx_hash": pa.string(),
    },
    "given_back": {"job_id": pa.int64(), "provider": WORD, "block": pa.int64()},
    "runs": {
        "job_id": pa.int64(),
        "claimed_at": pa.int64(),
        "slurm_id": pa.int64(),
        "state": WORD,
        "started_at": pa.int64(),
        "ended_at": pa.int64(),
        "exit_status": pa.int64(),
        "guarded": pa.bool_(),
        "ran_s": pa.int64(),
        "cpus": pa.int64(),
        "nodes": pa.int64(),
        "mem_mb": pa.int64(),
        "gpus": pa.int64(),
        "wanted_nodes": pa.int64(),
    },
}


@dataclass(frozen=True)
class EntryTables:
    """The entries of some jobs. `jobs` is sorted by id. The other tables are in the order of their events."""

    jobs: pa.Table
    settlements: pa.Table
    transfers: pa.Table
    claims: pa.Table
    given_back: pa.Table
    runs: pa.Table

    @cached_property
    def moved_wei(self) -> Wei:
        """The amount of each transfer."""
        return amounts(self.transfers, "wei")

    @cached_property
    def locked_wei(self) -> Wei:
        """What was locked for each job."""
        return amounts(self.jobs, "locked_wei")

    @cached_property
    def released_wei(self) -> Wei:
        """What came back to the customer of each job before its end."""
        return amounts(self.jobs, "released_wei")

    @cached_property
    def rate_wei(self) -> Wei:
        """The price of a minute of each job."""
        return amounts(self.jobs, "rate_wei_per_minute")


def tables_of(ledger: Ledger, runs: Iterable[Run] = ()) -> EntryTables:
    """Return the entries of a ledger and of Slurm as columns."""
    jobs = [ledger.jobs[job_id] for job_id in sorted(ledger.jobs)]
    return EntryTables(
        jobs=_table("jobs", jobs, _job_figures(jobs, ledger.requested)),
        settlements=_table("settlements", ledger.settlements),
        transfers=_table("transfers", ledger.transfers),
        claims=_table("claims", ledger.claims),
        given_back=_table("given_back", ledger.given_back),
        runs=_table("runs", found := list(runs), _run_figures(found)),
    )


def numbers(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a column of numbers. Absent ones are MISSING."""
    column = table[name].combine_chunks()
    return np.asarray(column.fill_null(MISSING) if column.null_count else column)


def flags(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a column of booleans."""
    return np.asarray(table[name].to_numpy(), dtype=bool)


def amounts(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Return a column of wei as Python ints."""
    high, low = (np.asarray(table[f"{name}_{part}"].combine_chunks()) for part in ("hi", "lo"))
    exact = low.astype(object)
    large = np.flatnonzero(high)
    exact[large] += high[large].astype(object) * LIMB
    return exact


def words(table: pa.Table, name: str) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    """Return a column of words as indices into the list of its distinct words. -1 means no word."""
    column = table[name].unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], WORD)
    return np.asarray(column.indices.fill_null(-1)).astype(np.int64), column.dictionary.to_pylist()


def limbs(values: Sequence[int]) -> tuple[pa.Array, pa.Array]:
    """Return the upper and the lower 64 bits of these amounts. Raises ChainError for more than 128 bits."""
    if any(not 0 <= value < LIMB * LIMB for value in values):
        raise ChainError("The chain shows an amount that the contract cannot hold.")
    return pa.array([value // LIMB for value in values], pa.uint64()), pa.array([v % LIMB for v in values], pa.uint64())


def schema(name: str) -> pa.Schema:
    """Return the columns of one of the tables."""
    fields: list[tuple[str, pa.DataType]] = []
    for column, kind in COLUMNS[name].items():
        fields += [(column, kind)] if kind is not None else [(f"{column}_{p}", pa.uint64()) for p in ("hi", "lo")]
    return pa.schema(fields)


def job_in(row: Mapping[str, Any]) -> Job:
    """Return the job in a row of `jobs`: its figures, without texts and conditions, which the books do not read."""
    return Job(
        id=row["id"],
        status=JobStatus(row["status"]),
        customer=row["customer"],
        provider=row["provider"],
        definition=JobDefinition(row["gpus"], row["mem_per_cpu_mb"], row["cpus_per_task"], row["ntasks"], ""),
        name="",
        locked_wei=_wei(row, "locked_wei"),
        final_cost_wei=_wei(row, "final_cost_wei"),
        submitted_at=row["submitted_at"],
        assigned_at=0,
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        cancel_requested_at=row["cancel_requested_at"],
        has_cancel_request=row["has_cancel_request"],
        rate_wei_per_minute=_wei(row, "rate_wei_per_minute"),
        cut_percent=row["cut_percent"],
        fee_minutes=row["fee_minutes"],
        granted_minutes=row["granted_minutes"],
        last_refuser=None,
        delegate_spending=False,
        last_error=row["last_error"],
        exit_status=row["exit_status"],
        released_wei=_wei(row, "released_wei"),
    )


def settlement_in(row: Mapping[str, Any]) -> Settlement:
    """Return the settlement in a row of `settlements`."""
    return Settlement(
        job_id=row["job_id"],
        provider=row["provider"],
        customer=row["customer"],
        billed_minutes=row["billed_minutes"],
        paid_wei=_wei(row, "paid_wei"),
        cut_wei=_wei(row, "cut_wei"),
        refunded_wei=_wei(row, "refunded_wei"),
        at=row["at"],
        block=row["block"],
        tx_hash=row["tx_hash"],
    )


def run_in(row: Mapping[str, Any]) -> Run:
    """Return the run in a row of `runs`."""
    given = Allocation(row["cpus"], row["nodes"], row["mem_mb"], row["gpus"], row["wanted_nodes"])
    return Run(
        job_id=row["job_id"],
        claimed_at=row["claimed_at"],
        slurm_id=row["slurm_id"],
        state=row["state"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        exit_status=row["exit_status"],
        guarded=row["guarded"],
        ran_s=row["ran_s"],
        given=given,
    )


def _wei(row: Mapping[str, Any], name: str) -> int:
    return int(row[f"{name}_hi"]) * LIMB + int(row[f"{name}_lo"])


def _table(name: str, entries: Sequence[object], figures: Mapping[str, Sequence[Any]] | None = None) -> pa.Table:
    arrays: list[pa.Array] = []
    for column, kind in COLUMNS[name].items():
        given = figures or {}
        values = given[column] if column in given else [getattr(entry, column) for entry in entries]
        arrays += limbs(values) if kind is None else [_array(values, kind)]
    return pa.Table.from_arrays(arrays, schema=schema(name))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode() if kind == WORD else pa.array(values, kind)


def _job_figures(jobs: Sequence[Job], requested: Mapping[int, int]) -> dict[str, list[Any]]:
    asked = [job.definition for job in jobs]
    return {
        "gpus": [one.gpus for one in asked],
        "mem_per_cpu_mb": [one.mem_per_cpu_mb for one in asked],
        "cpus_per_task": [one.cpus_per_task for one in asked],
        "ntasks": [one.ntasks for one in asked],
        "requested_in": [requested.get(job.id) for job in jobs],
    }


def _run_figures(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the columns of runs that are not fields of a run. Files at the cluster can name numbers of any length."""
    names = ("cpus", "nodes", "mem_mb", "gpus", "wanted_nodes")
    return {name: [getattr(run.given, name) for run in runs] for name in names} | {
        name: [min(getattr(run, name), MOST) for run in runs] for name in ("job_id", "claimed_at")
    }
