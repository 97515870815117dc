"""`dps web`: the web app on this machine, which signs with the key file."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from deepgrid.billing.credits import parse_credits
from deepgrid.cli.access.address_book import find_book
from deepgrid.cli.access.key_file import existing_key
from deepgrid.cli.options import DEFAULT_KEY, BookFile, KeyFile
from deepgrid.cli.standard_streams import start_logging
from deepgrid.errors import InputError
from deepgrid.extras import needs

USUAL_PORT = 8484
USUAL_LIMIT = "1000"


def web(
    port: Annotated[
        int, typer.Option(envvar="DEEPGRID_WEB_PORT", help="Port to listen at; 0 for a free one.", min=0, max=65535)
    ] = USUAL_PORT,
    limit: Annotated[
        str, typer.Option(metavar="AMOUNT", help="Maximum credits per hour that the page may lock, allow or transfer.")
    ] = USUAL_LIMIT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    address_file: Annotated[
        Path | None, typer.Option(help="File for the newest address with its one-time token, instead of printing it.")
    ] = None,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Serve the web app for your key, to this machine only, until Ctrl-C."""
    with needs("web"):
        from deepgrid.signer.local import LocalSettings, serve_local
    limit_wei = parse_credits(limit)
    if limit_wei < 0:
        raise InputError("The limit is negative.")
    key, book = existing_key(key), asyncio.run(find_book(book))
    start_logging()
    settings = LocalSettings(key, limit_wei, book, port, address_file)
    with _browser(wanted=not no_browser) as show:
        asyncio.run(serve_local(settings, show))


@contextmanager
def _browser(*, wanted: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints each address, and opens the first one in the browser through a private file.

    The file keeps the token out of the list of processes, which other users can read.
    """
    has_screen = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    opens = wanted and has_screen and sys.stdout.isatty()
    with tempfile.TemporaryDirectory(prefix="dps-web-") as folder:
        page = Path(folder) / "open.html"

        def show(address: str) -> None:
            typer.echo(f"The web app, for one browser: {address}")
            if opens and not page.exists():
                page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">')
                webbrowser.open(page.as_uri())

        yield show
