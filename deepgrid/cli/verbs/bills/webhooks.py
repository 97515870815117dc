"""`dps notify`: webhooks that the grid's services call about your own jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.cli.access.grid import as_sender
from deepgrid.cli.display.screen import Screen, json_text, print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, KeyFile
from deepgrid.cli.standard_streams import print_result
from deepgrid.errors import InputError

notify = typer.Typer(help="Send events of your jobs to a webhook.", no_args_is_help=True)

EVENTS = ("ended", "failed", "waiting", "money-ending")


@notify.command("add")
@runs
async def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the webhook, with https.")],
    on: Annotated[str, typer.Option("--on", metavar="EVENTS", help="Events, separated by commas.")] = ",".join(EVENTS),
    wait: Annotated[int, typer.Option("--wait", metavar="MINUTES", help="Minutes that a job may wait.", min=1)] = 60,
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Tell a webhook when a job of yours ended, failed, waits too long, or when its bought time ends."""
    from deepgrid.services.client.subscriptions_client import subscribe

    wanted = [word.strip() for word in on.split(",")]
    if wrong := [word for word in wanted if word not in EVENTS]:
        raise InputError(f"{wrong[0][:40]!r} is no event.", next_step=f"Use some of: {', '.join(EVENTS)}.")
    if "://" not in url:
        raise InputError(f"{url[:60]!r} is no URL.", next_step="Give a webhook such as https://example.org/hook.")
    async with as_sender(key, book) as session:
        made = await subscribe(session.services, url, wanted, wait)
    if as_json:
        print_result(json_text({**made.model_dump(), "events": wanted, "wait_minutes": wait}))
    else:
        print_result(f"subscription {made.id}: {', '.join(wanted)}", f"key {made.key}")


@notify.command("list")
@runs
async def list_subscriptions(as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """List your webhooks. Only their hosts are shown."""
    from deepgrid.services.client.subscriptions_client import subscriptions

    async with as_sender(key, book) as session:
        found = await subscriptions(session.services)
    if as_json:
        print_json([one.model_dump() for one in found])
        return
    rows = [[str(one.id), one.host, ",".join(one.events), str(one.wait_minutes)] for one in found]
    Screen().table([">ID", "HOST", "EVENTS", ">WAIT"], rows)


@notify.command("remove")
@runs
async def remove(
    number: Annotated[int, typer.Argument(metavar="ID", help="Number of the subscription.", min=1)],
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Remove a webhook."""
    from deepgrid.services.client.subscriptions_client import unsubscribe

    async with as_sender(key, book) as session:
        await unsubscribe(session.services, number)
    print_result(f"subscription {number} removed")
