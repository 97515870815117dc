"""`dps submit` submits a workflow file as a job. `dps offers` shows what each cluster would be for it, as a table."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli import options
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import amount, as_customer, as_reader
from deepgrid.cli.display.job_display import show_event
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import interruptions_explained, runs
from deepgrid.cli.standard_streams import OutputLost, print_result, require_output
from deepgrid.client.cluster_offers import ClusterOffer, Offers
from deepgrid.client.grid import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import credits_of, wei_of
from deepgrid.client.order import Preference, Terms
from deepgrid.client.workflow import Workflow, read_workflow
from deepgrid.errors import InputError
from deepgrid.plain_text import plain

WorkflowFile = Annotated[Path, typer.Argument(metavar="FILE", help="Workflow file of the job; `-` is standard input.")]
CreditsWei = Annotated[
    str | None, typer.Option("--credits-wei", metavar="WEI", help="The same in wei, instead of --credits.")
]
JobName = Annotated[
    str | None, typer.Option("--job-name", help="Name of at most 32 bytes.", show_default="the file's name")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show the job's states and output until it is over.")]
ExitOnJobExit = Annotated[bool, typer.Option("--exit-on-job-exit", "-e", help="Watch, and exit with the job's status.")]
GiveUpAfter = Annotated[
    str | None,
    typer.Option(
        "--give-up-after",
        metavar="TIME",
        help="Cancel and refund the job if no cluster has it after this time, 10m or more.",
    ),
]
Prefer = Annotated[
    str, typer.Option("--prefer", metavar="WHAT", help="What counts most: balanced, price, start or speed.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Show the clusters and their prices; submit nothing.")]
DelegateSpending = Annotated[
    bool, typer.Option("--delegate-spending", help="Let the grid top up the job from your allowance.")
]


@runs
async def submit(
    file: WorkflowFile,
    credits: options.Credits = None,
    credits_wei: CreditsWei = None,
    job_name: JobName = None,
    uses: options.Uses = None,
    affinities: options.Affinities = None,
    min_time: options.MinTime = None,
    max_price: options.MaxPrice = None,
    give_up_after: GiveUpAfter = None,
    prefer: Prefer = "balanced",
    plan: PlanOnly = False,
    provider: options.OnlyCluster = None,
    watch: Watch = False,
    exit_on_job_exit: ExitOnJobExit = False,
    no_timestamp: options.NoTimestamp = False,
    no_approve: options.NoApprove = False,
    delegate_spending: DelegateSpending = False,
    ignore_unknown_fields: options.IgnoreUnknownFields = False,
    force: Force = False,
    key: options.KeyFile = options.DEFAULT_KEY,
    book: options.BookFile = None,
) -> None:
    """Submit a job, and lock credits for it. Credits that it does not use are returned."""
    locked_wei = _locked(credits, credits_wei)
    preferred = cast(Preference, prefer)  # checked with the other terms, before the question
    Terms.of(uses or (), affinities or (), delegate_spending, min_time, max_price, give_up_after, preferred)
    workflow = await _valid_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    choice = _choice(uses, affinities, min_time, max_price)
    if plan:
        async with as_reader(book) as grid:
            show_offers(Screen(), await grid.offers(workflow, credits_of(locked_wei), provider=provider, **choice))
        return
    if provider is not None:
        raise InputError("--provider only narrows --plan.", next_step="Name the cluster with --uses name=CLUSTER.")
    async with as_customer(key, book, asks_services=True) as grid:
        name = workflow.name if job_name is None else job_name
        confirm(
            f"Lock {format_credits(locked_wei)} credits of {grid.address} for the job {name}?"
            " What it does not use is returned.",
            force=force,
        )
        with interruptions_explained():
            choice |= {"give_up_after": give_up_after, "prefer": preferred, "delegate_spending": delegate_spending}
            job = await grid.submit(workflow, credits_of(locked_wei), name=job_name, approve=not no_approve, **choice)
        print_result(f"job {job.id} submitted")
        if delegate_spending:
            await _remind_of_allowance(grid)
        if watch or exit_on_job_exit:
            await _follow(job, workflow, timestamps=not no_timestamp, exits=exit_on_job_exit)


def _choice(
    uses: list[str] | None, affinities: list[str] | None, min_time: str | None, max_price: str | None
) -> dict[str, Any]:
    """Return the options that choose clusters, as the client takes them."""
    return {"uses": uses or (), "affinities": affinities or (), "min_time": min_time, "max_price": max_price}


async def _valid_workflow(file: Path, *, ignore_unknown_fields: bool) -> Workflow:
    """Return the workflow, with its warnings on standard error. Raises InputError for its faults."""
    workflow = await read_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    for warning in workflow.validate():
        typer.echo(plain(warning), err=True)
    return workflow


async def _remind_of_allowance(grid: AsyncGrid) -> None:
    if not await grid.wallet.allowance:
        typer.echo(
            "The allowance is 0, so the grid cannot top up the job: set one with `dps allowance set AMOUNT`.", err=True
        )


async def _follow(job: AsyncJob, workflow: Workflow, *, timestamps: bool, exits: bool) -> None:
    """Show the job until it is over. With `exits`, end with its exit status."""
    screen = Screen(timestamps=timestamps)
    try:
        require_output()
        if not workflow.definition.enable_logging:
            screen.remark("enableLogging is off: the job's output stays at the cluster")
        async for event in job.events():
            show_event(screen, event)
    except (asyncio.CancelledError, OutputLost):
        typer.echo(
            f"\ndps: job {job.id} continues. See it with `dps job logs {job.id} --follow`, end it with"
            f" `dps job cancel {job.id}`.",
            err=True,
        )
        raise
    if exits:
        raise typer.Exit(job.exit_status or 0)


def _locked(credits: str | None, wei: str | None) -> int:
    if credits is not None and wei is None:
        return amount(credits, wei=False)
    if wei is not None and credits is None:
        return amount(wei, wei=True)
    raise InputError(
        "The number of credits to lock is missing, or given twice.",
        next_step="Give --credits or --credits-wei, not both.",
    )


# Without --credits: enough for every price, so that no cluster counts as too expensive.
ENDLESS_WEI = 2**96 - 2
COLUMNS = ["cluster", "fits", ">credits/min", ">minutes", ">start", ">speed", ">reliability", "why not"]


@runs
async def offers(
    file: WorkflowFile,
    credits: options.Credits = None,
    min_time: options.MinTime = None,
    max_price: options.MaxPrice = None,
    uses: options.Uses = None,
    affinities: options.Affinities = None,
    provider: options.OnlyCluster = None,
    ignore_unknown_fields: options.IgnoreUnknownFields = False,
    as_json: options.AsJson = False,
    book: options.BookFile = None,
) -> None:
    """Show what each cluster would be for a job: whether it fits, its price, its estimated start. Nothing is sent."""
    locked_wei = ENDLESS_WEI if credits is None else amount(credits, wei=False)
    workflow = await read_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    async with as_reader(book) as grid:
        choice = _choice(uses, affinities, min_time, max_price)
        found = await grid.offers(workflow, credits_of(locked_wei), provider=provider, **choice)
    if as_json:
        print_json([_as_json(offer, limited=credits is not None) for offer in found])
    else:
        show_offers(Screen(), found, limited=credits is not None)


def show_offers(screen: Screen, found: Offers, *, limited: bool = True) -> None:
    """Print the offers. If no credits limit the job, the minutes are left out."""
    if not len(found):
        screen.line("No cluster has joined the grid yet.")
        return
    screen.table(COLUMNS, (_cells(offer, limited=limited) for offer in found))


def _cells(offer: ClusterOffer, *, limited: bool) -> list[str]:
    return [
        offer.cluster,
        "yes" if offer.fits else "no",
        f"{offer.rate:f}",
        str(offer.minutes) if limited else "-",
        _start(offer.wait_s),
        "-" if offer.speed is None else f"{offer.speed:.3g}",
        f"{offer.reliability:.0%}",
        offer.obstacle,
    ]


def _start(wait_s: int | None) -> str:
    if wait_s is None:
        return "-"
    return "now" if wait_s < 60 else f"in {-(-wait_s // 60)} min"


def _as_json(offer: ClusterOffer, *, limited: bool) -> dict[str, Any]:
    return {
        "cluster": offer.cluster,
        "address": offer.address,
        "fits": offer.fits,
        "obstacle": offer.obstacle,
        "wei_per_minute": str(wei_of(offer.rate)),
        "minutes": offer.minutes if limited else None,
        "estimated_start": None if offer.start is None else int(offer.start.timestamp()),
        "speed": offer.speed,
        "reliability": offer.reliability,
    }
