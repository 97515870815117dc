"""`dps key`: creates key files and shows their addresses. The key itself is never shown."""

from __future__ import annotations

import typer

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.cli.grid import wallet
from deepgrid.cli.options import DEFAULT_KEY, KeyFile

key = typer.Typer(help="Create a key, or show its address.", no_args_is_help=True)


@key.command("create")
def create(key: KeyFile = DEFAULT_KEY) -> None:
    """Create a key file that only you can read, and print its address.

    Keep a copy of the file in a safe place. If the file is lost, the credits are lost.
    """
    made = Wallet.create(key)
    print(made.address)
    typer.echo(f"The key is in {made.key_file}. Keep a copy of it in a safe place.", err=True)


@key.command("show")
def show(key: KeyFile = DEFAULT_KEY) -> None:
    """Print the address of your key."""
    print(wallet(key).address)
