"""Finds the key file of a verb. On a terminal, a missing key can be made or imported at once."""

from __future__ import annotations

from pathlib import Path

import typer
from eth_utils.exceptions import ValidationError

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.cli.access.confirmation import interruptible, on_terminal
from deepgrid.cli.access.environment import KEY, KEY_PATH, variables, warn
from deepgrid.cli.options import DEFAULT_KEY
from deepgrid.errors import ConfigurationError

IMPORT = f"`printenv {KEY} | dps key import`"


def key_path(key: Path) -> Path:
    """Return the key file that the options or the variables name, with ~ expanded."""
    if key == DEFAULT_KEY and (named := variables().get(KEY_PATH)):
        key = Path(named)
    return key.expanduser()


def existing_key(key: Path) -> Path:
    """Return the key file of a verb, which exists.

    Raises ConfigurationError when there is none, or when ETH_PRIVATE_KEY holds another key than the default file.
    """
    where = key_path(key)
    if not where.exists():
        _offer_key(where)
    elif variables().get(KEY):
        _check_plain_variable(where, named=where != DEFAULT_KEY.expanduser())
    return where


def store_key(text: str, where: Path) -> Wallet:
    return _announce(Wallet.keep(text, where))


def create_key(where: Path) -> Wallet:
    return _announce(Wallet.create(where))


def ask_for_key() -> str:
    """Return a key that the user types or pastes. It is not shown."""
    with interruptible():
        text: str = typer.prompt("Your private key (64 hex digits, not shown)", hide_input=True, err=True)
    return text


def _announce(wallet: Wallet) -> Wallet:
    typer.echo(f"The key is in {wallet.key_file}. Keep a copy of it in a safe place.", err=True)
    return wallet


def _offer_key(where: Path) -> None:
    """Make or import the missing key on a terminal. Raises ConfigurationError elsewhere, or if the user declines."""
    if on_terminal():
        typer.echo(f"There is no key file {where}.", err=True)
        with interruptible():
            answer = typer.prompt("[c]reate a new key, [i]mport yours, or [q]uit?", default="q", err=True)
        match answer.strip().lower()[:1]:
            case "c":
                typer.echo(f"Your address is {create_key(where).address}. It needs credits and gas.", err=True)
                return
            case "i":
                typer.echo(f"Your address is {store_key(ask_for_key(), where).address}.", err=True)
                return
    elif variables().get(KEY):
        raise ConfigurationError(
            f"{variables().where(KEY)} is not used: other programs can see it. Keys come from files.",
            next_step=f"Run {IMPORT}, then unset the variable.",
        )
    raise ConfigurationError(
        f"There is no key file {where}.",
        next_step="Create one with `dps key create`, or name yours with --key or DPS_KEY_FILE.",
    )


def _check_plain_variable(where: Path, *, named: bool) -> None:
    """Warn of a key in the environment. Raises ConfigurationError if it is unclear which key is meant."""
    origin = variables().where(KEY)
    if not named and not _same(where, variables().get(KEY)):
        raise ConfigurationError(
            f"{origin} and {where} hold different keys, and dps takes keys from files only.",
            next_step="Name the file with --key or DPS_KEY_FILE, or unset the variable.",
        )
    warn(f"{origin} is set, and other programs can see its value. It is not used; the key is in {where}.")


def _same(where: Path, text: str) -> bool:
    digits = text.strip().lower().removeprefix("0x")
    try:
        address = Wallet(bytes.fromhex(digits)).address
    except (ValidationError, ValueError):  # not a key
        return False
    return address == Wallet.load(where).address
