"""`dps sweep`: sweeps as groups, and retries of their failed jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import as_customer
from deepgrid.cli.display.screen import Screen, json_text, print_json
from deepgrid.cli.error_boundary import interruptions_explained, runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, KeyFile, NoApprove
from deepgrid.cli.standard_streams import print_result
from deepgrid.cli.verbs.repeat.repeat_options import After, AfterAny, WithTag
from deepgrid.cli.verbs.repeat.secrets_of_jobs import ask_secrets
from deepgrid.client import AsyncJob
from deepgrid.client.display.text import plural
from deepgrid.client.job_values import wei_of
from deepgrid.client.repeat.sweep_groups import SweepGroup, SweepRow, is_parameter, is_variable

LONGEST_CELL = 24
SHORT_ID = 8
TOO_LONG = (
    "The parameters of this sweep are too long to be kept. Each secret is asked for once, and all jobs get it. "
    "If a secret was a parameter, press Ctrl-C and use grid.retry_sweep with own_secrets."
)

sweep = typer.Typer(help="Show sweeps as groups, and repeat what failed in them.", no_args_is_help=True)
SweepId = Annotated[str, typer.Argument(metavar="SWEEP", help="Id of the sweep, or the beginning of it.")]


@sweep.command("list")
@runs
async def list_sweeps(
    tag: WithTag = None, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """List your sweeps, newest first, with the states of their jobs."""
    async with as_customer(key, book, asks_services=True) as grid:
        groups = await grid.sweeps(tags=tag)
    if as_json:
        print_json([_group_json(group) for group in groups])
    elif groups:
        rows = [[group.id[:SHORT_ID], group.name, _submission_time(group), group.progress] for group in groups]
        Screen().table(["SWEEP", "NAME", "SUBMITTED", "JOBS"], rows)
    else:
        typer.echo("You have no sweeps" + (" with these tags." if tag else " yet."), err=True)


@sweep.command("show")
@runs
async def show(
    sweep_id: SweepId,
    failed: Annotated[bool, typer.Option("--failed", help="Show only the jobs that failed.")] = False,
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Show a sweep: its jobs with their parameters as columns."""
    async with as_customer(key, book, asks_services=True) as grid:
        group = await grid.sweep(sweep_id)
    rows = group.failed if failed else group.rows
    if as_json:
        print_json({**_group_json(group), "jobs": [_row_json(row) for row in rows]})
        return
    screen = Screen()
    screen.line((f"sweep {group.id[:SHORT_ID]}", "bold"), f"  {group.name}  ", (group.progress, "bold"))
    if group.tags or group.note:
        words = " ".join(f"{name}={value}" if value else name for name, value in group.tags.items())
        screen.line("; ".join(part for part in (words, group.note) if part))
    heads = [">#", *group.columns, ">JOB", "STATE", "CLUSTER", ">COST", "END"]
    screen.table(heads, [_cells(row, group.columns) for row in rows])
    if group.failed:
        screen.line(f"Repeat the failed ones with `dps sweep retry {group.id[:SHORT_ID]}`.")


@sweep.command("retry")
@runs
async def retry(
    sweep_id: SweepId,
    after: After = None,
    after_any: AfterAny = None,
    no_approve: NoApprove = False,
    as_json: AsJson = False,
    force: Force = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Run the jobs of a sweep again that are over and did not finish, on their own terms."""
    async with as_customer(key, book, asks_services=True) as grid:
        group = await grid.sweep(sweep_id)
        failed = group.failed
        if not failed:
            typer.echo(f"Nothing of the sweep failed: {group.progress}.", err=True)
            if as_json:
                print_json({"sweep": group.id, "jobs": []})
            return
        jobs = [await grid.job(row.job_id) for row in failed]
        locked = format_credits(sum(job.on_chain.locked_wei for job in jobs))
        what = f"{plural(len(failed), 'job')} of the sweep {group.name}"
        confirm(f"Lock {locked} credits of {grid.address} to run {what} again?", force=force)
        secrets, own = await _ask_secrets(group, jobs)
        with interruptions_explained():
            numbers = await grid.retry_sweep(
                group.id,
                secrets=secrets,
                own_secrets=own,
                after=after,
                after_any=after_any,
                approve=not no_approve,
            )
    if as_json:
        print_result(json_text({"sweep": group.id, "jobs": numbers}))
    else:
        print_result(f"{plural(len(numbers), 'job')} submitted: {', '.join(map(str, numbers))}")


async def _ask_secrets(group: SweepGroup, jobs: Sequence[AsyncJob]) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Ask for the secrets of all failed jobs, and for each job's secrets that are parameters of the sweep."""
    known = [dict.fromkeys(group.columns, "")]  # for jobs whose own parameters are not kept
    masked = (await jobs[0].file()).masked
    common = [place for place in masked if not is_parameter(place, group.failed[0].parameters or known)]
    if any(map(is_variable, common)) and not any(row.parameters for row in group.rows):
        typer.echo(TOO_LONG, err=True)
    secrets = ask_secrets(common, jobs[0].id)
    own: dict[int, dict[str, str]] = {}
    for row, job in zip(group.failed, jobs, strict=True) if any(is_parameter(one, known) for one in masked) else ():
        sets = row.parameters or known
        places = [one for one in (await job.file()).masked if one not in secrets or is_parameter(one, sets)]
        own[job.id] = ask_secrets(places, job.id)
    return secrets, own


def _submission_time(group: SweepGroup) -> str:
    return group.submitted.astimezone().strftime("%Y-%m-%d %H:%M:%S") if group.submitted else "-"


def _cells(row: SweepRow, columns: list[str]) -> list[str]:
    values = [", ".join(one[name] for one in row.parameters if name in one) for name in columns]
    again = f" ({row.attempts} tries)" if row.attempts > 1 else ""
    cost = f"{row.cost:f}" if row.status.cold else "-"
    shown = [value if len(value) <= LONGEST_CELL else value[: LONGEST_CELL - 1] + "…" for value in values]
    return [str(row.at), *shown, str(row.job_id), row.status.words + again, row.cluster or "-", cost, row.outcome]


def _group_json(group: SweepGroup) -> dict[str, Any]:
    return {
        "sweep": group.id,
        "name": group.name,
        "size": group.size,
        "states": group.counts,
        "failed": len(group.failed),
        "submitted": None if group.submitted is None else int(group.submitted.timestamp()),
        "tags": dict(group.tags),
        "note": group.note,
    }


def _row_json(row: SweepRow) -> dict[str, Any]:
    return {
        "at": row.at,
        "parameters": [dict(one) for one in row.parameters],
        "job": row.job_id,
        "state": row.status.words,
        "outcome": row.outcome,
        "cluster": row.cluster or None,
        "cost_wei": str(wei_of(row.cost)),
        "attempts": row.attempts,
    }
