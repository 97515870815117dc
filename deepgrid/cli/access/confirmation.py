"""Asks the user on a terminal: to confirm what costs money, and for a key. Nothing is asked in pipes and scripts."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from deepgrid.plain_text import plain

Force = Annotated[
    bool, typer.Option("--force", "-f", "--yes", "-y", help="Do not ask for confirmation, not even on a terminal.")
]
REFUSED = 1


def on_terminal() -> bool:
    """Return whether a person can answer: standard input and output are terminals."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, force: bool) -> None:
    """Ask before money moves; no is the default. Without a terminal nothing is asked.

    Raises typer.Exit unless the user agrees.
    """
    if force or not on_terminal():
        return
    with interruptible():
        agreed = typer.confirm(plain(question), default=False, err=True)
    if not agreed:
        typer.echo("Cancelled.", err=True)
        raise typer.Exit(REFUSED)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a question at once, even inside an event loop, which would wait for the answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
