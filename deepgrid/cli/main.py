"""The `dps` command, with its groups of verbs."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from importlib.util import find_spec
from keyword import iskeyword
from pkgutil import resolve_name
from typing import Annotated

import typer

from deepgrid.cli.error_boundary import RootCommand
from deepgrid.cli.lazy import LazyCommand, group_with
from deepgrid.cli.standard_streams import take_streams

COMPLETION_VARIABLE = "_DPS_COMPLETE"
JOBS, MONEY, GRID = "Jobs", "Credits and keys", "Clusters and the grid"


def _verbs(name: str, panel: str, help_text: str, module: str = "") -> LazyCommand:
    function = f"{name}_" if iskeyword(name) else name
    load = partial(resolve_name, f"deepgrid.cli.verbs.{module or name}:{function}")
    return LazyCommand(name, help_text, load, panel=panel)


COMMANDS = (
    _verbs("submit", JOBS, "Submit a workflow file as a job; prints `job ID submitted`."),
    _verbs("offers", JOBS, "Compare the clusters for a job, before any money moves.", "submit"),
    _verbs("job", JOBS, "Show jobs, read their output, cancel them, buy them more time."),
    _verbs("sweep", JOBS, "Show sweeps as groups, and repeat what failed in them.", "repeat.sweep"),
    _verbs("notify", JOBS, "Send events of your jobs to a webhook.", "bills.webhooks"),
    _verbs("tui", JOBS, "Open the terminal app: jobs, logs, clusters, and forms to submit and pay."),
    _verbs("web", JOBS, "Open the web app on this machine, which signs with your key file."),
    _verbs("init", JOBS, "Write a commented workflow file to start from.", "workflow"),
    _verbs("validate", JOBS, "Check a workflow file: prints `valid` and its cost, or one line per fault.", "workflow"),
    _verbs("render", JOBS, "Print the batch script that a provider runs for a workflow file.", "workflow"),
    _verbs("import", JOBS, "Make a workflow file of a Slurm batch script.", "workflow"),
    _verbs("schema", JOBS, "Print the JSON schema of workflow files, for editors.", "workflow"),
    _verbs("credit", MONEY, "Show, transfer or create credits.", "money"),
    _verbs("allowance", MONEY, "Show or set how many of your credits the grid may lock.", "money"),
    _verbs("gas", MONEY, "Show or transfer the currency that pays for transactions.", "money"),
    _verbs("key", MONEY, "Create or import a key, or show its address.", "money"),
    _verbs("budget", MONEY, "Limit the credits that you use per month.", "bills.budget"),
    _verbs("usage", MONEY, "Show what your jobs cost, by month, cluster or name.", "bills.costs"),
    _verbs("receipt", MONEY, "Verify receipts of jobs.", "bills.receipt"),
    _verbs("provider", GRID, "Show clusters, join with your own, approve and ban providers."),
    _verbs("operator", GRID, "Deploy and administer the contracts, run the meta-scheduler."),
    _verbs("services", GRID, "Run the grid's Job Definition and log services."),
    _verbs("completion", GRID, "Print or install the completion of `dps` for a shell."),
)

app = typer.Typer(
    name="dps",
    cls=group_with(RootCommand, *COMMANDS),
    help="Submit jobs to a grid of clusters, follow them, and pay for what ran.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit status: 0 done, 1 refused or failed, 2 input or configuration wrong or grid not usable, 3 done, but"
    " standard output cannot be written.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"dps {version('deepgrid')}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    logging.basicConfig(level=logging.CRITICAL)
    if debug:
        logging.getLogger("deepgrid").setLevel(logging.DEBUG)


def main() -> None:
    """Entry point of `dps`."""
    take_streams()
    if COMPLETION_VARIABLE in os.environ:  # a shell asks for completions
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    app(prog_name="dps", args=["tui"] if _opens_app() else None)


def _opens_app() -> bool:
    """Return whether `dps` has no arguments, runs on a terminal and has the extra `tui`. Otherwise it prints help."""
    terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return len(sys.argv) == 1 and terminal and find_spec("textual") is not None
