"""`python -m deployments.onemachine demo|up|admit|down|status`: the commands of `./run`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from deepgrid.errors import GridError
from deployments.onemachine.benchmark_runs import measure
from deployments.onemachine.daemons.ports import RANGE
from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.view import login_words, table, timetable, web_words

STATE_VARIABLE = "DEEPGRID_STATE"
FOREIGN = ("PREFECT_", "SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "PG", "DEEPGRID_", "MYSQL_")
REPOSITORY = Path(__file__).resolve().parents[2]
JOB_FILE = REPOSITORY / "examples" / "hello-world.yaml"


def main(kind: type[LocalGrid] = LocalGrid) -> int:
    """Run one command.

    Returns the exit status: 0, or 1 for a dead process or a failure. `demo` returns the job's status.
    """
    parser = argparse.ArgumentParser(prog="./run", description="The grid on one machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("down", "status"):
        commands.add_parser(name)
    up_options = commands.add_parser("up")
    up_options.add_argument("--unmeasured", action="store_true", help="do not measure the clusters")
    admit_options = commands.add_parser("admit")
    admit_options.add_argument("address", help="a customer's wallet address")
    demo_options = commands.add_parser("demo")
    demo_options.add_argument("--exit", action="store_true", help="stop the grid after the job")
    options = parser.parse_args()
    grid = kind(Path(os.environ.get(STATE_VARIABLE) or REPOSITORY / ".grid"))
    forget_other_grids()
    try:
        if options.command == "demo":
            return demo(grid, end_at_once=options.exit)
        if options.command == "admit":
            return admit(grid, options.address)
        if options.command == "up":
            return up(grid, measured=not options.unmeasured)
        return {"down": down, "status": status}[options.command](grid)
    except GridError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("run: interrupted", file=sys.stderr)
        return 130


def up(grid: LocalGrid, *, measured: bool) -> int:
    """Start missing processes and print how to use the grid. `measured` measures clusters without measured labels."""
    bring_up(grid)
    if measured:
        measure(grid, lambda line: print(line, flush=True))
    show(table(grid.rows()), timetable(grid.prefect))
    print()
    show(login_words(grid.prefect), web_words(grid.web_address()))
    print(f"As the grid's customer in a terminal:\n  source {grid.state}/customer.env")
    print("  dps submit examples/hello-world.yaml --credits 100 --job-name hello --watch --exit-on-job-exit")
    return 0


def bring_up(grid: LocalGrid) -> None:
    """Start missing processes. Print a line per finished step."""
    if not grid.up(lambda name, seconds: print(f"  {name} ({seconds:.1f} s)", flush=True)):
        print("The grid is up already.")
    for note in grid.notes:
        print(note)


def down(grid: LocalGrid) -> int:
    """Stop everything."""
    names = grid.down()
    print(f"Stopped {len(names)} processes." if names else "Nothing runs.")
    return 0


def admit(grid: LocalGrid, address: str) -> int:
    """Create accounts on the clusters for one more customer."""
    names = grid.roles.make_accounts(address)
    print("\n".join(names) if names else "This grid trusts its customers: all jobs share one Unix account.")
    return 0


def status(grid: LocalGrid) -> int:
    """Show the processes. Returns 1 when the grid is not up, or when a process died."""
    rows = grid.rows()
    if rows:
        show(table(rows), timetable(grid.prefect), login_words(grid.prefect), web_words(grid.web_address()))
    is_up = grid.is_up()
    print("The grid is up." if is_up else "The grid is not up." if not rows else "The grid is not complete.")
    return 0 if is_up else 1


def demo(grid: LocalGrid, *, end_at_once: bool) -> int:
    """Run and show a job. Returns the job's exit status.

    On a terminal, the grid then stays up until Ctrl-C, unless `end_at_once`. A grid that was already up is not stopped.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    was_up = grid.is_up()
    try:
        bring_up(grid)
        status = _show_job(grid)
        if not end_at_once and sys.stdin.isatty():
            _stay(grid)
        return status
    finally:
        if not was_up:
            grid.down()


def _show_job(grid: LocalGrid) -> int:
    """Submit the example as the grid's customer, and watch it until its end."""
    argv = [str(grid.roles.dps), "submit", str(JOB_FILE), "--credits", "100", "--job-name", "hello", "--force"]
    print(f"\n$ dps {' '.join(argv[1:])} --watch", flush=True)
    env = {**os.environ, **grid.roles.customer_environment()}
    status = subprocess.run([*argv, "--watch", "--exit-on-job-exit"], env=env, check=False).returncode
    print(f"\nThe same job as a flow run with its tasks: {grid.prefect.ui_url}/runs", flush=True)
    print(f"{login_words(grid.prefect)}\n{web_words(grid.web_address())}", flush=True)
    return status


def _stay(grid: LocalGrid) -> None:
    print(f"The grid stays up until Ctrl-C. Its customer elsewhere: source {grid.state}/customer.env", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def show(*tables: str) -> None:
    """Print the non-empty parts, separated by blank lines."""
    print("\n\n".join(filter(None, tables)))


def forget_other_grids() -> None:
    """Unset the user's variables that name other Prefect servers, clusters and databases. The ports stay."""
    for name in [name for name in os.environ if name.startswith(FOREIGN) and name != RANGE]:
        del os.environ[name]


if __name__ == "__main__":
    sys.exit(main())
