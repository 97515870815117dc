"""`python -m deployments.onemachine up|down|status`: what `./run` hands over to."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from deepgrid.errors import GridError
from deployments.onemachine.grid import Grid
from deployments.onemachine.view import show_table

STATE_VARIABLE = "DEEPGRID_STATE"
FOREIGN = ("PREFECT_", "SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "PG", "DEEPGRID_", "MYSQL_")
REPOSITORY = Path(__file__).resolve().parents[2]

console = Console(highlight=False)


def main() -> int:
    """Do one command; returns the exit status: 0, or 1 when something is down or failed."""
    parser = argparse.ArgumentParser(prog="./run", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "down", "status"):
        commands.add_parser(name)
    command = parser.parse_args().command
    grid = Grid(Path(os.environ.get(STATE_VARIABLE) or REPOSITORY / ".grid"))
    forget_other_grids()
    try:
        return {"up": up, "down": down, "status": status}[command](grid)
    except GridError as error:
        console.print(f"run: {error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("run: interrupted; ./run down stops what was started")
        return 130


def up(grid: Grid) -> int:
    """Start what does not run yet and say how to use it."""
    if not grid.up(lambda name, seconds: console.print(f"  {name} ({seconds:.1f} s)", markup=False)):
        console.print("The grid is up already.")
    show_table(grid.rows(), console)
    for note in grid.notes:
        console.print(note, markup=False)
    return 0


def down(grid: Grid) -> int:
    """Stop everything."""
    names = grid.down()
    console.print(f"Stopped {len(names)} processes." if names else "Nothing runs.")
    return 0


def status(grid: Grid) -> int:
    """Show what runs; 1 when the grid is not up or something of it died."""
    rows = grid.rows()
    if rows:
        show_table(rows, console)
    is_up = grid.is_up()
    console.print("The grid is up." if is_up else "The grid is not up." if not rows else "The grid is not complete.")
    return 0 if is_up else 1


def forget_other_grids() -> None:
    """Drop settings for other Prefect servers, clusters and databases that a person's shell may carry."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        del os.environ[name]


if __name__ == "__main__":
    sys.exit(main())
