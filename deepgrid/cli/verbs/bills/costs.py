"""`dps usage`: what your own jobs cost, by month, cluster or name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.billing.usage.own_usage import OwnUsage, as_rows, checked_by, usage_as_json
from deepgrid.cli.access.grid import address, as_anyone, wallet
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, KeyFile
from deepgrid.cli.standard_streams import print_result, write_bytes
from deepgrid.client.bills.job_usage import period_of, read_own_usage, usage_csv, usage_frame, usage_parquet
from deepgrid.client.display.text import plural
from deepgrid.errors import InputError
from deepgrid.extras import needs
from deepgrid.files.private_files import replace_file

FORMS = ("table", "csv", "parquet", "json")


@runs
async def usage(
    since: Annotated[str | None, typer.Option("--from", metavar="DATE", help="Start, UTC; your first job.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="DATE", help="End, not part of it; now.")] = None,
    by: Annotated[str, typer.Option("--by", metavar="GROUP", help="month, cluster, name or job.")] = "month",
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="table, csv, parquet or json.")] = "",
    to: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a file instead.")] = None,
    as_json: AsJson = False,
    who: Annotated[str, typer.Option("--customer", metavar="ADDRESS", help="Another customer.")] = "",
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Show what your jobs cost, in the period in which they were settled."""
    groups, wanted = checked_by(by), _form(form, to, as_json=as_json)
    customer = address(who) if who else wallet(key).address
    async with as_anyone(book) as chain:
        found = await read_own_usage(chain, customer, await period_of(chain, since, until))
    if wanted == "table" and to is None:
        _show(found, by)
    elif wanted == "json" and to is None:
        print_json(usage_as_json(found, groups))
    else:
        data = _bytes(found, by, wanted)
        if to is None:
            write_bytes(data)
            return
        try:
            replace_file(to.expanduser(), data)
        except OSError as error:
            raise InputError(f"{to} cannot be written: {error.strerror}.") from None
        print_result(f"{plural(found.totals.jobs, 'job')} written to {to}")


def _form(form: str, to: Path | None, *, as_json: bool) -> str:
    """Return the output format: the named one, or the format of the file's extension. Raises InputError."""
    named = form or ("json" if as_json else "") or (to.suffix.removeprefix(".") if to else "") or "table"
    if named not in FORMS or (named == "table" and to):
        raise InputError(f"{named[:40]!r} is no form of a usage.", next_step=f"Use one of: {', '.join(FORMS[1:])}.")
    return named


def _bytes(found: OwnUsage, by: str, form: str) -> bytes:
    groups = checked_by(by)
    if form == "json":
        return json.dumps(usage_as_json(found, groups), indent=2).encode() + b"\n"
    with needs("bills"):
        frame = usage_frame(found, groups)
        return usage_parquet(frame) if form == "parquet" else usage_csv(frame).encode()


def _show(found: OwnUsage, by: str) -> None:
    rows = [
        [str(row[by]), str(row.get("jobs", 1)), str(row["minutes"]), *_amounts(row)]
        for row in as_rows(found, checked_by(by))
    ]
    totals = found.totals
    amounts = {"cost_wei": totals.cost_wei, "refunded_wei": totals.refunded_wei}
    rows.append(["total", str(totals.jobs), str(totals.billed_minutes), *_amounts(dict(amounts))])
    screen = Screen()
    screen.table([by.upper(), ">JOBS", ">MINUTES", ">COST", ">REFUNDED"], rows)
    if found.open_jobs:
        screen.line(f"{plural(found.open_jobs, 'open job')} hold {format_credits(found.locked_wei)} credits.")


def _amounts(row: dict[str, str | int]) -> list[str]:
    return [format_credits(int(row[name])) for name in ("cost_wei", "refunded_wei")]
