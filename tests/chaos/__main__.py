"""`python -m tests.chaos --fault NAME [--fault NAME] [--seed N]` runs a round on its own grid.

`--list` lists all faults.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.fault import Fault, all_faults
from tests.chaos.round import Violated, run_round
from tests.chaos.table import Table
from tests.chaos.world import chaos_world


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        help="a fault of the round; repeat the option to inject several, one after another",
    )
    parser.add_argument(
        "--match", help="instead of --fault: all faults whose name matches this pattern, --at-once per round"
    )
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=1, help="number of repetitions; each one increases the seed by 1")
    parser.add_argument("--jobs", type=int, default=4, help="number of jobs submitted for each fault")
    parser.add_argument("--long", action="store_true", help="also submit jobs that take minutes")
    parser.add_argument("--state", type=Path, help="folder of the grid; it is kept with its logs")
    parser.add_argument("--list", action="store_true", help="list the names of all faults")
    return parser.parse_args(arguments)


def rounds(options: argparse.Namespace, faults: dict[str, Fault]) -> list[list[Fault]]:
    """Return the faults of each round."""
    if options.match is None:
        return [[faults[name] for name in options.fault]]
    found = [fault for name, fault in faults.items() if re.search(options.match, name)]
    return [found[first : first + options.at_once] for first in range(0, len(found), options.at_once)]


async def run(options: argparse.Namespace, faults: dict[str, Fault], state: Path) -> int:
    table, wrong = Table(), 0
    async with chaos_world(state) as world:
        for seed in range(options.seed, options.seed + options.times):
            for together in rounds(options, faults):
                began = time.monotonic()
                try:
                    await run_round(world, together, seed, table.add, jobs_per_fault=options.jobs, long=options.long)
                except Violated as error:
                    wrong += 1
                    print(error, file=sys.stderr)
                names = ", ".join(fault.name for fault in together)
                print(f"{time.monotonic() - began:6.1f} s  seed {seed}: {names}", file=sys.stderr, flush=True)
    print(table.text())
    return 1 if wrong else 0


def main() -> int:
    options, faults = parse(), all_faults()
    if options.list:
        print("\n".join(faults))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(options, faults, options.state or Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
