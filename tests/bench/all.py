"""`./run bench all [NAME ...]`: runs every benchmark, or the named ones, and compares with the committed figures.

The table is compared with docs/explanation/figures.md, as ratios to a computation that is measured in the same run.
`--write` stores the new figures in that page. `--saved capacity=FILE` takes the output of an earlier run of that
benchmark, for example with a million jobs, on the same machine at a similar load. Exit status 1: a benchmark failed, or
a figure got worse by over 15 %.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.scale.bench_figures import PAGE, Figure, last_json, page_of, read_page, reference_ms, worse

HELPERS = {"all", "stranger_attacks"}
"""Programs that other benchmarks start."""
WITHIN_S = 3600


def names() -> list[str]:
    """Return the benchmarks that `./run bench` lists, except HELPERS."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [one.stem for one in files if one.stem not in HELPERS and "__main__" in one.read_text()]


def measured(bench: str, saved: Path | None = None) -> tuple[list[Figure], str]:
    """Run a benchmark, or take its saved output. Returns its figures, and why it failed, if so."""
    before, failure = reference_ms(), ""
    if saved is None:
        argv = [sys.executable, "-m", f"tests.bench.{bench}"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, timeout=WITHIN_S)
        failure = f"{bench} ended with exit status {done.returncode}" if done.returncode else ""
    output = done.stdout if saved is None else saved.read_text()
    reference = round((before + reference_ms()) / 2, 1)
    try:
        found = last_json(output)
    except ValueError as error:
        return [], failure or f"{bench}: {error}"
    today = datetime.now(UTC).date().isoformat()
    load, cores = round(os.getloadavg()[1], 1), os.cpu_count() or 1
    return [Figure(bench, name, value, reference, load, cores, today) for name, value in found.items()], failure


def saved_outputs(given: list[str]) -> dict[str, Path]:
    """Return the files of `--saved NAME=FILE`."""
    pairs = [one.partition("=") for one in given]
    return {name.replace("-", "_"): Path(file) for name, _, file in pairs}


def show(figures: list[Figure], before: dict[tuple[str, str], Figure]) -> None:
    table = Table("bench", "figure", "now", "committed", "worse by")
    for one in figures:
        known = before.get((one.bench, one.name))
        ratio = one.ratio_to(known) if known else None
        shown = "" if ratio is None else f"{ratio - 1:+.0%}"
        table.add_row(one.bench, one.name, f"{one.value:g}", f"{known.value:g}" if known else "", shown)
    Console(width=110).print(table)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*")
    options.add_argument("--write", action="store_true")
    options.add_argument("--saved", action="append", default=[], metavar="NAME=FILE")
    given = options.parse_args()
    saved = saved_outputs(given.saved)
    chosen = [name.replace("-", "_") for name in given.names] or list(saved) or names()
    if unknown := set(chosen) - set(names()):
        options.error(f"there is no bench {', '.join(sorted(unknown))}")
    before = read_page(PAGE.read_text()) if PAGE.exists() else {}
    figures: list[Figure] = []
    failures: list[str] = []
    for bench in chosen:
        began = time.monotonic()
        found, failure = measured(bench, saved.get(bench))
        figures += found
        failures += [failure] if failure else []
        print(f"{bench}: {len(found)} figures in {time.monotonic() - began:.0f} s", file=sys.stderr)
    show(figures, before)
    bad = worse(figures, before)
    for one, ratio in bad:
        print(f"worse: {one.bench} {one.name} by {ratio - 1:.0%}")
    for failure in failures:
        print(f"failed: {failure}")
    if given.write:
        kept = {key: one for key, one in before.items() if key[0] not in {figure.bench for figure in figures}}
        PAGE.write_text(page_of({**kept, **{(one.bench, one.name): one for one in figures}}))
    return 1 if bad or failures else 0


if __name__ == "__main__":
    sys.exit(main())
