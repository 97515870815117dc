"""`dps tui`: the terminal app. `dps` alone on a terminal opens it too."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from deepgrid.cli.access.environment import variables
from deepgrid.cli.options import DEFAULT_KEY, BookFile, KeyFile
from deepgrid.errors import InputError
from deepgrid.extras import needs


def tui(
    read_only: Annotated[
        str, typer.Option("--read-only", metavar="ADDRESS", help="Watch the jobs of this address, without a key.")
    ] = "",
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Open the terminal app: jobs, logs, clusters, and forms to submit and pay."""
    if not all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)):
        raise InputError("`dps tui` needs a terminal.", next_step="Use `dps job list` in scripts.")
    with needs("tui"):
        from deepgrid.tui.terminal import run_app
    address = ""
    if read_only:
        from deepgrid.cli.access import grid  # takes a second to load, which the first screen need not wait for

        address = grid.address(read_only)
    key, book = _key_and_book(key, book, read_only=bool(read_only))
    run_app(address, key, book)


def _key_and_book(key: Path, book: Path | None, *, read_only: bool) -> tuple[Path, Path | None]:
    """Return the key file and the address book. The usual ones are left to the app, whose first screen is fast."""
    if variables().values or not (read_only or key.expanduser().exists()):
        from deepgrid.cli.access.address_book import find_book
        from deepgrid.cli.access.key_file import existing_key

        key = key if read_only else existing_key(key)
        book = asyncio.run(find_book(book))
    return key, book
