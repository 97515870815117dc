"""`./run bench reconcile`: reconciles 1,000,000 jobs from Parquet files, 1 % of them with planted differences.

Every kind of difference is planted (`tests/billing/frauds.py`). `--jobs N` takes another number of jobs. The last line
is JSON: `seconds_1m` is CPU time for a million jobs, without the making of the files; `peak_mb` is the peak of memory.
Exit status 1: a planted difference was not found by its name, one was invented, or a bar was missed: 15 s and 3 GB for
a million jobs.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from deepgrid.billing.columns.claims import Window
from deepgrid.billing.columns.entry_files import read_runs_only, read_windows, write_entries
from deepgrid.billing.columns.entry_tables import EntryTables, tables_of
from deepgrid.billing.reconcile import reconcile_windows
from deepgrid.billing.rules.differences import Side
from deepgrid.billing.rules.kinds import Kind
from deepgrid.billing.rules.prefilter import shared_runs
from deepgrid.billing.totals import Contract
from tests.billing.frauds import BASE, bill_minutes, plant, settlement_of
from tests.billing.histories import CREDIT, DAY, ME, MIDNIGHT, History, Plan, S, block_of

TILE = 10_000  # jobs that are made one by one; the world repeats them with other numbers
OFFSET = 4_000_000  # between the numbers of two tiles
MOST_SECONDS, MOST_MB = 15.0, 3000
SINGLE = [kind for kind in Kind if kind not in (Kind.A_MINUTE_TOO_MUCH, Kind.LATE_ENDS)]
ENDS = [S.FINISHED] * 12 + [S.FAILED, S.CANCELLED, S.OUT_OF_CREDITS, S.RUNNING]
PADDED, PUNCTUAL = "0xPadded", "0xPunctual"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=1_000_000)
    options.add_argument("--measure", type=Path)
    given = options.parse_args()
    if given.measure:
        return measure(given.measure, given.jobs)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        made, planted = tile()
        tables = tables_of(made.ledger(), made.runs)
        tiles = max(1, given.jobs // TILE)
        write_entries(Path(folder), (moved(tables, number) for number in range(tiles)))
        (Path(folder) / "planted.json").write_text(json.dumps([[job_id, kind] for job_id, kind in sorted(planted)]))
        print(f"made {tiles * TILE:,} jobs in {time.monotonic() - began:.0f} s")
        command = [sys.executable, "-m", "tests.bench.reconcile", "--measure", folder, "--jobs", str(given.jobs)]
        return subprocess.run(command, check=False).returncode


def measure(folder: Path, jobs: int) -> int:
    """Reconcile the files and print what was found."""
    began = _cpu_s()
    first = block_of(DAY.since)
    window = Window(first, block_of(DAY.until) - 1, ME)
    side = Side(DAY, shared=shared_runs(read_runs_only(folder)))
    result = reconcile_windows("alpha", read_windows(folder), window, side, Contract(0, 0, 0, 0))
    seconds, peak_mb = _cpu_s() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    tiles = max(1, jobs // TILE)
    of_tile = [(job_id, Kind(kind)) for job_id, kind in json.loads((folder / "planted.json").read_text())]
    planted = {(job_id + OFFSET * tile, kind) for job_id, kind in of_tile for tile in range(tiles)}
    planted.add((0, Kind.LATE_ENDS))
    found = {(one.job_id, one.kind) for one in result.differences}
    if any(one.kind is Kind.LATE_ENDS and one.customer == PUNCTUAL for one in result.patterns):
        found.add((0, Kind.LATE_ENDS))
    counted = {kind: sum(one[1] is kind for one in found & planted) for kind in Kind}
    print("\n".join(f"{kind:36} {counted[kind]:>8}" for kind in Kind))
    print(f"{result.totals.jobs:,} jobs in {seconds:.1f} s of CPU time")
    figures = {
        "seconds_1m": round(seconds * 1e6 / (tiles * TILE), 2), "peak_mb": peak_mb, "planted": len(planted),
        "found": len(found & planted), "invented": len(found - planted), "jobs": tiles * TILE,
    }  # fmt: skip
    print(json.dumps(figures))
    right = figures["found"] == figures["planted"] and figures["invented"] == 0
    return 0 if right and figures["seconds_1m"] <= MOST_SECONDS and peak_mb <= MOST_MB else 1


def tile() -> tuple[History, set[tuple[int, Kind]]]:
    """Return honest jobs of many kinds with 1 % differences, and what was planted."""
    chance, made, planted = random.Random(43), History(DAY), set[tuple[int, Kind]]()
    for kind in SINGLE * 3:
        planted |= {(job_id, kind) for job_id in plant(made, kind)}
    for _ in range(8):
        job_id = made.add(replace(BASE, customer=PADDED))
        bill_minutes(made, job_id, settlement_of(made, job_id).billed_minutes + 1)
        planted.add((job_id, Kind.A_MINUTE_TOO_MUCH))
    for _ in range(10):
        made.add(replace(BASE, ran_s=61, customer=PUNCTUAL))
    while len(made.jobs) < TILE:
        made.add(_honest(chance))
    return made, planted


def _honest(chance: random.Random) -> Plan:
    end = chance.choice(ENDS)
    return Plan(
        end=end, submit=MIDNIGHT + chance.randrange(-4 * 3600, 20 * 3600), locked=chance.randrange(1, 10**24),
        rate=chance.randrange(CREDIT), top_up=chance.choice([0, 0, chance.randrange(10**22)]),
        ran_s=chance.randrange(1, 9000), report_after_s=chance.randrange(30), clock_s=chance.randrange(-20, 20),
        cancel_requested=end is S.CANCELLED, fault=chance.random() < 0.01,
        customer=f"0x{chance.randrange(400):040x}",
    )  # fmt: skip


def moved(tables: EntryTables, number: int) -> EntryTables:
    """Return the entries of a tile with other numbers."""

    def shifted(name: str) -> pa.Table:
        table: pa.Table = getattr(tables, name)
        for column in ("id", "job_id", "slurm_id"):
            if column in table.column_names:
                at = table.column_names.index(column)
                table = table.set_column(at, column, pc.add(table[column], number * OFFSET))
        return table

    return EntryTables(**{name: shifted(name) for name in EntryTables.__dataclass_fields__})


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
