"""`dps provider`: shows clusters, joins the grid with a cluster, approves and bans providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from deepgrid.chain.offers import read_versions
from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.chain.writer import Writer
from deepgrid.cli.access.grid import address, as_anyone, as_sender, provider_address
from deepgrid.cli.display.offer import (
    hash_of,
    offer_as_json,
    read_hash,
    show_offer,
    show_proposal,
    show_standing,
    standing_as_json,
)
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.lazy import group_with, project_verbs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, KeyFile
from deepgrid.cli.standard_streams import print_result

provider = typer.Typer(
    cls=group_with(TyperGroup, *project_verbs("provider")),
    help="Show clusters, join with your own, approve and ban providers.",
    no_args_is_help=True,
)

Who = Annotated[str, typer.Argument(metavar="ADDRESS", help="Address of the provider.")]


@provider.command("list")
@runs
async def list_providers(as_json: AsJson = False, book: BookFile = None) -> None:
    """List the clusters of the grid with their hardware, prices and labels."""
    async with as_anyone(book) as chain:
        found = await chain.providers()
    if as_json:
        print_json([offer_as_json(one) for one in found])
        return
    if not found:
        typer.echo("No cluster has joined this grid yet.", err=True)
    screen = Screen()
    for one in found:
        show_offer(screen, one)


@provider.command("status")
@runs
async def status(
    who: Annotated[
        str, typer.Argument(metavar="PROVIDER", help="Address or cluster name; yours (by --key) if left out.")
    ] = "",
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Show a provider: its waiting proposal, its past jobs and its current jobs."""
    async with as_anyone(book) as chain:
        candidate = await provider_address(chain, who, key)
        versions = await read_versions(chain, candidate)
        record, queues = await chain.track_record(candidate), await chain.queues(candidate)
    if as_json:
        print_json(standing_as_json(candidate, versions, record, queues))
        return
    screen = Screen()
    screen.line(f"The provider {candidate} {versions.standing.value}.")
    show_standing(screen, versions, record, queues)


@provider.command("approve")
@runs
async def approve(
    who: Who,
    looked_at: Annotated[
        str, typer.Option("--proposal", metavar="HASH", help="Hash of the proposal, as `dps provider status` shows it.")
    ] = "",
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Approve a provider's proposal, exactly as it is shown here (operator's key)."""
    candidate = address(who)
    expected = read_hash(looked_at) if looked_at else None
    async with as_sender(key, book) as session:
        versions = await read_versions(session.chain, candidate)
        if expected is None:
            show_proposal(Screen(), versions)
            expected = hash_of(versions)
        receipt = await session.writer.approve_proposal(candidate, expected)
    print_result(f"{candidate} is approved.", f"transaction {receipt.tx_hash}")


@provider.command("remove")
@runs
async def remove(who: Who, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Remove a provider; its claimed jobs are settled as usual (operator's key)."""
    await _decide(who, key, book, lambda writer: writer.remove_provider, "is removed")


@provider.command("ban")
@runs
async def ban(who: Who, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Bar a provider from new jobs; its claimed jobs are settled as usual (operator's key)."""
    async with as_anyone(book) as chain:
        await chain.provider(address(who))  # the contract would also ban a mistyped address
    await _decide(who, key, book, lambda writer: writer.ban_provider, "is banned")


@provider.command("unban")
@runs
async def unban(who: Who, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Lift a ban; the approved version is valid again (operator's key)."""
    await _decide(who, key, book, lambda writer: writer.unban_provider, "is no longer banned")


async def _decide(
    who: str, key: Path, book: Path | None, verb: Callable[[Writer], Callable[[str], Awaitable[Receipt]]], became: str
) -> None:
    """Send one of the operator's decisions on a provider, and print the result."""
    candidate = address(who)
    async with as_sender(key, book) as session:
        receipt = await verb(session.writer)(candidate)
    print_result(f"{candidate} {became}.", f"transaction {receipt.tx_hash}")
