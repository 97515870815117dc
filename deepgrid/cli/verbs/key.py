"""`dps key`: creates key files and shows their addresses. The key itself is never shown."""

from __future__ import annotations

import sys

import typer

from deepgrid.cli.access.grid import wallet
from deepgrid.cli.access.key_file import asked_for_key, chosen, created, stored
from deepgrid.cli.options import DEFAULT_KEY, KeyFile
from deepgrid.cli.standard_streams import print_result

MAX_LINE = 1000  # characters; a key has 66

key = typer.Typer(help="Create or import a key, or show its address.", no_args_is_help=True)


@key.command("create")
def create(key: KeyFile = DEFAULT_KEY) -> None:
    """Create a key file that only you can read, and print its address.

    Keep a copy of the file in a safe place. If the file is lost, the credits are lost.
    """
    print_result(created(chosen(key)).address)


@key.command("import")
def import_key(key: KeyFile = DEFAULT_KEY) -> None:
    """Put a private key that you have into a key file that only you can read, and print its address.

    The key is asked for, or read from standard input if that is no terminal. It is never an argument.
    """
    text = asked_for_key() if sys.stdin.isatty() else sys.stdin.readline(MAX_LINE)
    print_result(stored(text, chosen(key)).address)


@key.command("show")
def show(key: KeyFile = DEFAULT_KEY) -> None:
    """Print the address of your key."""
    print(wallet(key).address)
