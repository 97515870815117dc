"""`dps submit` submits a workflow file as a job. `dps offers` compares the clusters for it in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli import options
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import amount, as_customer, as_reader
from deepgrid.cli.display.screen import Screen, json_text, print_json
from deepgrid.cli.error_boundary import interruptions_explained, runs
from deepgrid.cli.standard_streams import print_result
from deepgrid.cli.verbs.repeat.array import ArrayRange, parse_array, submit_array
from deepgrid.cli.verbs.repeat.following import follow
from deepgrid.cli.verbs.repeat.repeat_options import After, AfterAny, Array, Note, Retries, Tag, Time
from deepgrid.client.cluster_offers import ClusterOffer, Offers
from deepgrid.client.grid import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import credits_of, wei_of
from deepgrid.client.order import Preference, Terms
from deepgrid.client.repeat.chosen_input import check_ways
from deepgrid.client.repeat.deposit import minutes_of, require_reach
from deepgrid.client.repeat.marks import mark_of
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
Cache = Annotated[
    bool, typer.Option("--cache", help="Reuse the result of an equal job submitted with --cache that has finished.")
]
GiveUpAfter = Annotated[
    str | None,
    typer.Option(
        "--give-up-after",
        metavar="TIME",
        help="Cancel and refund the job if no cluster has taken it after this time, 10m or more.",
    ),
]
Prefer = Annotated[
    str, typer.Option("--prefer", metavar="WHAT", help="What counts most: balanced, price, start or speed.")
]
Send = Annotated[
    list[Path] | None,
    typer.Option("--send", metavar="PATH", help="File or folder that the job finds in $DEEPSQUARE_INPUT; repeatable."),
]
InputFrom = Annotated[
    int | None, typer.Option("--input-from", metavar="ID", help="Job whose output becomes the input.", min=1)
]
Private = Annotated[
    bool,
    typer.Option("--private", help="Encrypt the files here and the output at the job; the grid cannot read them."),
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
    send: Send = None,
    input_from: InputFrom = None,
    private: Private = False,
    plan: PlanOnly = False,
    provider: options.OnlyCluster = None,
    watch: Watch = False,
    exit_on_job_exit: ExitOnJobExit = False,
    no_timestamp: options.NoTimestamp = False,
    no_approve: options.NoApprove = False,
    delegate_spending: DelegateSpending = False,
    after: After = None,
    after_any: AfterAny = None,
    cache: Cache = False,
    ignore_unknown_fields: options.IgnoreUnknownFields = False,
    time: Time = None,
    tag: Tag = None,
    note: Note = None,
    array: Array = None,
    retries: Retries = 0,
    as_json: options.AsJson = False,
    force: Force = False,
    key: options.KeyFile = options.DEFAULT_KEY,
    book: options.BookFile = None,
) -> None:
    """Submit a job, and lock credits for it. Unused credits are returned."""
    locked_wei = _wei_to_lock(credits, credits_wei, time, min_time)
    preferred = cast(Preference, prefer)  # checked with the other terms, before the question
    terms = Terms.of(uses or (), affinities or (), delegate_spending, min_time, max_price, give_up_after, preferred)
    terms.following(after, after_any)
    mark_of(tag, note or "")
    check_ways(None, cache=cache, private=private)
    numbers = None if array is None else parse_array(array)
    workflow = await _valid_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    choice = _choice(uses, affinities, min_time, max_price)
    if plan:
        async with as_reader(book) as grid:
            locked = None if time else credits_of(locked_wei)
            if time:
                await _explain_deposit(grid, workflow, time, choice)
            show_offers(Screen(), await grid.offers(workflow, locked, time=time, provider=provider, **choice))
        return
    if provider is not None:
        raise InputError("--provider only narrows --plan.", next_step="Name the cluster with --uses name=CLUSTER.")
    follows = watch or exit_on_job_exit or bool(retries)
    _check_array(numbers, follows=follows, as_json=as_json, cache=cache)
    async with as_customer(key, book, asks_services=True) as grid:
        if time:
            locked_wei = await _explain_deposit(grid, workflow, time, choice)
            choice["min_time"] = min_time or time
        _confirm(grid, workflow.name if job_name is None else job_name, locked_wei, numbers, force=force)
        choice |= {"give_up_after": give_up_after, "prefer": preferred, "delegate_spending": delegate_spending}
        choice |= {"credits": credits_of(locked_wei), "name": job_name, "tags": tag, "note": note or ""}
        choice |= {"send": send or (), "input_from": input_from, "after": after, "after_any": after_any}
        choice["private"] = private
        if numbers is not None:
            await submit_array(grid, workflow, numbers, choice | {"approve": not no_approve}, as_json=as_json)
            return
        with interruptions_explained():
            job = await grid.submit(workflow, approve=not no_approve, cache=cache, retries=retries, **choice)
        _print_submitted(job, as_json=as_json, cached=job.cached)
        if delegate_spending:
            await _remind_of_allowance(grid)
        if follows:
            exits = exit_on_job_exit
            await follow(job, workflow, timestamps=not no_timestamp, exits=exits)


def _check_array(numbers: ArrayRange | None, *, follows: bool, as_json: bool, cache: bool) -> None:
    """Raise InputError for options that cannot be used with many jobs, or with JSON."""
    if follows and (as_json or numbers):
        raise InputError("--watch, --exit-on-job-exit and --retries follow one job.", next_step="Leave them out.")
    if numbers and cache:
        raise InputError("--cache is for one job.", next_step="Leave out --array.")


def _print_submitted(job: AsyncJob, *, as_json: bool, cached: bool) -> None:
    if as_json:
        locked_wei = 0 if cached else job.on_chain.locked_wei
        said = {"cached": True} if cached else {}
        print_result(json_text({"job": job.id, "name": job.name, "locked_wei": str(locked_wei), **said}))
    elif cached:
        print_result(f"job {job.id} was equal and has finished: nothing is locked. See `dps job receipt {job.id}`.")
    else:
        print_result(f"job {job.id} submitted")


def _confirm(grid: AsyncGrid, name: str, locked_wei: int, numbers: ArrayRange | None, *, force: bool) -> None:
    locks, what = f"Lock {format_credits(locked_wei)} credits", f"the job {name}"
    if numbers is not None:
        count = len(numbers.numbers)
        locks, what = f"Lock {format_credits(locked_wei * count)} credits", f"{count:,} jobs {name}"
        if numbers.at_once < count:
            locks = (
                f"Lock {format_credits(locked_wei * numbers.at_once)} credits at a time,"
                f" at most {format_credits(locked_wei * count)} in all,"
            )
    confirm(f"{locks} of {grid.address} for {what}? What it does not use is returned.", force=force)


async def _explain_deposit(grid: AsyncGrid, workflow: Workflow, time: str, choice: dict[str, Any]) -> int:
    """Say what the time costs at each cluster; returns the deposit in wei."""
    asked = {name: choice[name] for name in ("uses", "affinities", "max_price")}
    deposit = await grid.deposit(workflow, time, **asked)
    typer.echo(plain(str(deposit)), err=True)
    return wei_of(deposit.credits)


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


def _wei_to_lock(credits: str | None, wei: str | None, time: str | None, least: str | None) -> int:
    """Return the credits to lock in wei; 0 if they follow from the time. Raises InputError."""
    if [credits, wei, time].count(None) != 2:
        raise InputError(
            "The number of credits to lock is missing, or given twice.",
            next_step="Give --credits or --credits-wei, or --time; not both.",
        )
    if time is not None:
        require_reach(minutes_of(time), minutes_of(least or time))
        return 0
    return amount(credits, wei=False) if credits is not None else amount(wei or "", wei=True)


# Without --credits: enough for any price, so that no cluster counts as too expensive.
ENDLESS_WEI = 2**96 - 2
COLUMNS = ["cluster", "fits", ">credits/min", ">minutes", ">start", ">speed", ">reliability", "why not"]


@runs
async def offers(
    file: WorkflowFile,
    credits: options.Credits = None,
    time: Time = None,
    min_time: options.MinTime = None,
    max_price: options.MaxPrice = None,
    uses: options.Uses = None,
    affinities: options.Affinities = None,
    provider: options.OnlyCluster = None,
    ignore_unknown_fields: options.IgnoreUnknownFields = False,
    as_json: options.AsJson = False,
    book: options.BookFile = None,
) -> None:
    """Compare the clusters for a job: whether it fits, its price, its estimated start. Nothing is sent."""
    if time is not None and credits is not None:
        raise InputError("The deposit is given twice.", next_step="Give --credits or --time, not both.")
    locked_wei = ENDLESS_WEI if credits is None else amount(credits, wei=False)
    workflow = await read_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    async with as_reader(book) as grid:
        choice = _choice(uses, affinities, min_time or time, max_price)
        found = await grid.offers(workflow, credits_of(locked_wei), provider=provider, **choice)
        if time is not None and not as_json and any(offer.fits for offer in found):
            await _explain_deposit(grid, workflow, time, choice)
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
