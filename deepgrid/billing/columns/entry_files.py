"""The entries of the books as Parquet files, one per kind of entry, read in windows of jobs.

Each file is sorted by job. So a window reads few row groups, and memory holds one window at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deepgrid.billing.columns.entry_tables import COLUMNS, WORD, EntryTables, schema

JOBS_PER_WINDOW = 250_000
ROWS_PER_GROUP = 50_000


def write_entries(folder: Path, windows: Iterable[EntryTables]) -> None:
    """Write the entries of windows of jobs, in the order of their jobs. A window has all entries of its jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        writers = {name: files.enter_context(_writer(folder, name)) for name in COLUMNS}
        for tables in windows:
            for name, writer in writers.items():
                table = getattr(tables, name)
                key = "id" if name == "jobs" else "job_id"
                writer.write_table(table.sort_by(key).cast(schema(name)), row_group_size=ROWS_PER_GROUP)


def read_windows(folder: Path, jobs_per_window: int = JOBS_PER_WINDOW) -> Iterator[EntryTables]:
    """Yield the entries window by window. The first one also has transfers and runs of jobs that are in no window."""
    ids = np.asarray(pq.read_table(_file(folder, "jobs"), columns=["id"])["id"].combine_chunks())
    edges = [None, *ids[jobs_per_window::jobs_per_window].tolist(), None]
    for low, high in pairwise(edges):
        read = {name: _read(folder, name, low, high) for name in COLUMNS}
        yield EntryTables(**read)


def read_runs_only(folder: Path) -> pa.Table:
    """Return the columns of all runs that show which of them belong to several claims."""
    columns = ["job_id", "claimed_at", "slurm_id", "started_at", "guarded"]
    return pq.read_table(_file(folder, "runs"), columns=columns)


def _writer(folder: Path, name: str) -> pq.ParquetWriter:
    """Return a writer that keeps a dictionary of words only: most numbers and amounts are distinct."""
    words = [column for column, kind in COLUMNS[name].items() if kind == WORD]
    return pq.ParquetWriter(_file(folder, name), schema(name), use_dictionary=words, compression="lz4")


def _read(folder: Path, name: str, low: int | None, high: int | None) -> pa.Table:
    key = pc.field("id" if name == "jobs" else "job_id")
    chosen = None if low is None else key >= low
    if high is not None:
        chosen = key < high if chosen is None else chosen & (key < high)
        if low is None:
            chosen = chosen | key.is_null()
    words = [column for column, kind in COLUMNS[name].items() if kind == WORD]
    return pq.read_table(
        _file(folder, name), filters=chosen, read_dictionary=words, schema=schema(name)
    ).combine_chunks()


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"
