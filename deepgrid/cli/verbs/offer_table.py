"""`dps offers`: what each cluster would be for a job, as a table, before any money moves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deepgrid.cli.access.grid import amount, as_reader
from deepgrid.cli.border import runs
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.options import (
    Affinities,
    AsJson,
    BookFile,
    Credits,
    IgnoreUnknownFields,
    MaxPrice,
    MinTime,
    OnlyCluster,
    Uses,
)
from deepgrid.client.cluster_offers import ClusterOffer, Offers
from deepgrid.client.job_values import credits_of, wei_of
from deepgrid.client.workflow import read_workflow

# Without --credits: enough for every price, so that no cluster counts as too expensive.
ENDLESS_WEI = 2**96 - 2
COLUMNS = ["cluster", "fits", ">credits/min", ">minutes", ">start", ">speed", ">reliability", "why not"]


@runs
async def offers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Workflow file of the job.")],
    credits: Credits = None,
    min_time: MinTime = None,
    max_price: MaxPrice = None,
    uses: Uses = None,
    affinities: Affinities = None,
    provider: OnlyCluster = None,
    ignore_unknown_fields: IgnoreUnknownFields = False,
    as_json: AsJson = False,
    book: BookFile = None,
) -> None:
    """Show what each cluster would be for a job: whether it fits, its price, its estimated start. Nothing is sent."""
    locked_wei = ENDLESS_WEI if credits is None else amount(credits, wei=False)
    workflow = await read_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    async with as_reader(book) as grid:
        found = await grid.offers(
            workflow, credits_of(locked_wei), uses=uses or (), affinities=affinities or (), min_time=min_time,
            max_price=max_price, provider=provider,
        )  # fmt: skip
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
