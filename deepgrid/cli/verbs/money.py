"""`dps credit`, `dps allowance`, `dps gas`, `dps key`: balances and transfers, the grid's allowance, key files.

Gas is the chain's native currency, which pays for transactions. Amounts have 18 decimals, like credits. A key is never
shown.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import (
    address,
    amount,
    as_anyone,
    as_customer,
    as_reader,
    as_sender,
    format_amount,
    wallet,
)
from deepgrid.cli.access.key_file import ask_for_key, create_key, key_path, store_key
from deepgrid.cli.display.screen import print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, Amount, AsJson, BookFile, InWei, KeyFile
from deepgrid.cli.standard_streams import print_result, with_transaction
from deepgrid.client.job_values import credits_of, wei_of
from deepgrid.errors import InputError

credit = typer.Typer(help="Show, transfer or create credits.", no_args_is_help=True)
allowance = typer.Typer(help="Show or set how many of your credits the grid may lock.", no_args_is_help=True)
gas = typer.Typer(help="Show or transfer the currency that pays for transactions.", no_args_is_help=True)
key = typer.Typer(help="Create or import a key, or show its address.", no_args_is_help=True)

MAX_LINE = 1000  # characters; a key has 66

CreditReceiver = Annotated[str, typer.Argument(metavar="ADDRESS", help="Receiver of the credits.")]
GasReceiver = Annotated[str, typer.Argument(metavar="ADDRESS", help="Receiver.")]
GasAmount = Annotated[str, typer.Argument(metavar="AMOUNT", help="How much, such as 1 or 0.5.")]
Owner = Annotated[str | None, typer.Argument(metavar="[ADDRESS]", help="Owner; your address if left out.")]


@credit.command("get")
@runs
async def credit_get(
    who: Owner = None, wei: InWei = False, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """Print the credits of an address."""
    owner = wallet(key).address if who is None else address(who)
    async with as_reader(book) as grid:
        credits = await (await grid.wallet_of(owner)).credits
    if as_json:
        print_json({"address": owner, "credits": f"{credits:f}", "credits_wei": str(wei_of(credits))})
        return
    print(format_amount(wei_of(credits), wei=wei))


@credit.command("transfer")
@runs
async def credit_transfer(
    to: CreditReceiver,
    value: Amount,
    wei: InWei = False,
    force: Force = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Transfer credits. This cannot be undone."""
    receiver, given_wei = address(to), amount(value, wei=wei)
    async with as_customer(key, book) as grid:
        confirm(
            f"Transfer {format_credits(given_wei)} credits of {grid.address} to {receiver}? This cannot be undone.",
            force=force,
        )
        with with_transaction(await grid.wallet.transfer(receiver, credits_of(given_wei))):
            left = await grid.wallet.credits
            print_result(f"{format_credits(given_wei)} credits given to {receiver}; {left:f} are left.")


@credit.command("mint")
@runs
async def credit_mint(
    to: CreditReceiver, value: Amount, wei: InWei = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """Create credits (minter's key)."""
    receiver, made_wei = address(to), amount(value, wei=wei)
    async with as_sender(key, book) as session:
        receipt = await session.writer.mint(receiver, made_wei)
        with with_transaction(receipt.tx_hash):
            now = format_credits(await session.chain.balance(receiver))
            print_result(f"{format_credits(made_wei)} credits created for {receiver}, who has {now} now.")


@allowance.command("get")
@runs
async def allowance_get(
    wei: InWei = False, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """Print how many of your credits the grid may lock for jobs."""
    owner = wallet(key).address
    async with as_reader(book) as grid:
        credits = await (await grid.wallet_of(owner)).allowance
    if as_json:
        print_json({"address": owner, "allowance": f"{credits:f}", "allowance_wei": str(wei_of(credits))})
    else:
        print(format_amount(wei_of(credits), wei=wei))


@allowance.command("set")
@runs
async def allowance_set(
    value: Amount, wei: InWei = False, force: Force = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """Let the grid lock this many of your credits in all; 0 revokes the allowance.

    `dps submit` sets the allowance that it needs.
    """
    allowed_wei = amount(value, wei=wei)
    async with as_customer(key, book) as grid:
        confirm(f"Let the grid lock {format_credits(allowed_wei)} credits of {grid.address}?", force=force)
        transaction = await grid.wallet.set_allowance(credits_of(allowed_wei))
        allowed = f"The grid may lock {format_credits(allowed_wei)} credits of {grid.address}."
        print_result(allowed, f"transaction {transaction}")


@gas.command("get")
@runs
async def gas_get(
    who: Owner = None, wei: InWei = False, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:
    """Print an address's balance of the chain's native currency."""
    owner = wallet(key).address if who is None else address(who)
    async with as_anyone(book) as chain:
        found_wei = await chain.gas_money(owner)
    if as_json:
        print_json({"address": owner, "gas": format_credits(found_wei), "gas_wei": str(found_wei)})
    else:
        print(format_amount(found_wei, wei=wei))


@gas.command("transfer")
@runs
async def gas_transfer(
    to: GasReceiver,
    value: GasAmount,
    wei: InWei = False,
    force: Force = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Transfer the chain's native currency, so that the receiver can pay for transactions."""
    receiver, given_wei = address(to), amount(value, wei=wei)
    async with as_sender(key, book) as session:
        has_wei = await session.chain.gas_money(session.address)
        if given_wei >= has_wei:
            raise InputError(
                f"{session.address} has {format_credits(has_wei)}, and the transaction itself has a cost.",
                next_step="Give less.",
            )
        confirm(f"Transfer {format_credits(given_wei)} of {session.address} to {receiver}?", force=force)
        receipt = await session.writer.give_gas_money(receiver, given_wei)
        with with_transaction(receipt.tx_hash):
            left_wei = await session.chain.gas_money(session.address)
            print_result(f"{format_credits(given_wei)} given to {receiver}; {format_credits(left_wei)} is left.")


@key.command("create")
def create(key: KeyFile = DEFAULT_KEY) -> None:
    """Create a key file that only you can read, and print its address.

    Keep a copy of the file in a safe place. If the file is lost, the credits are lost.
    """
    print_result(create_key(key_path(key)).address)


@key.command("import")
def import_key(key: KeyFile = DEFAULT_KEY) -> None:
    """Put an existing private key into a key file that only you can read, and print its address.

    The key is asked for, or read from standard input if that is not a terminal. It is never an argument.
    """
    text = ask_for_key() if sys.stdin.isatty() else sys.stdin.readline(MAX_LINE)
    print_result(store_key(text, key_path(key)).address)


@key.command("show")
def show(key: KeyFile = DEFAULT_KEY) -> None:
    """Print the address of your key."""
    print(wallet(key).address)
