"""`python -m tests.chaos --fault NAME [--fault NAME] [--seed N]`: a round on a grid of its own; `--list`: all names."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.chaos.fault import all_faults
from tests.chaos.round import Violated, run_round
from tests.chaos.table import Table
from tests.chaos.world import chaos_world


async def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--fault", action="append", default=[], help="may be given several times, in their order")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=1, help="rounds, with seeds that count up")
    parser.add_argument("--jobs", type=int, default=4, help="jobs submitted at each fault")
    parser.add_argument("--keep", type=Path, help="folder for the grid, kept for its logs")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    faults = all_faults()
    if options.list or not options.fault:
        print("\n".join(faults))
        return 0
    table, wrong = Table(), 0
    with tempfile.TemporaryDirectory() as folder:
        async with chaos_world(options.keep or Path(folder)) as world:
            for seed in range(options.seed, options.seed + options.times):
                try:
                    await run_round(
                        world, [faults[name] for name in options.fault], seed, table, jobs_per_fault=options.jobs
                    )
                except Violated as error:
                    wrong += 1
                    print(error, file=sys.stderr)
    print(table.text())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
