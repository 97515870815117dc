"""The `dps` command: puts the groups of verbs together."""

from __future__ import annotations

import io
import logging
import sys
from typing import Annotated

import typer

from cli.border import Border
from cli.credit import allowance, credit
from cli.gas import gas
from cli.job import job
from cli.key import key
from cli.operator import operator, services
from cli.provider import provider
from cli.submit import submit
from cli.workflow import init, render, schema, validate

app = typer.Typer(
    name="dps",
    cls=Border,
    help="Submit jobs to a grid of clusters, follow them, and pay for what ran.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit status: 0 done, 1 refused or failed, 2 input or configuration wrong or grid not usable.",
)

JOBS, MONEY, GRID = "Jobs", "Credits and keys", "Clusters and the grid"


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
        logging.getLogger("cli").setLevel(logging.DEBUG)
        logging.getLogger("deepgrid").setLevel(logging.DEBUG)


app.command("submit", rich_help_panel=JOBS)(submit)
app.add_typer(job, name="job", rich_help_panel=JOBS)
app.command("init", rich_help_panel=JOBS)(init)
app.command("validate", rich_help_panel=JOBS)(validate)
app.command("render", rich_help_panel=JOBS)(render)
app.command("schema", rich_help_panel=JOBS)(schema)
app.add_typer(credit, name="credit", rich_help_panel=MONEY)
app.add_typer(allowance, name="allowance", rich_help_panel=MONEY)
app.add_typer(gas, name="gas", rich_help_panel=MONEY)
app.add_typer(key, name="key", rich_help_panel=MONEY)
app.add_typer(provider, name="provider", rich_help_panel=GRID)
app.add_typer(operator, name="operator", rich_help_panel=GRID)
app.add_typer(services, name="services", rich_help_panel=GRID)


def main() -> None:
    """Entry point of `dps`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a job may write what this terminal cannot
    app(prog_name="dps")
