"""`dps credit`, `dps allowance`: balances, transfers, and the grid's allowance."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import address, amount, as_customer, as_reader, as_sender, shown, wallet
from deepgrid.cli.border import runs
from deepgrid.cli.options import DEFAULT_KEY, Amount, BookFile, InWei, KeyFile
from deepgrid.cli.standard_streams import print_result, with_transaction
from deepgrid.client.job_values import credits_of, wei_of

credit = typer.Typer(help="Show, transfer or create credits.", no_args_is_help=True)
allowance = typer.Typer(help="Show or set how many of your credits the grid may lock.", no_args_is_help=True)


@credit.command("get")
@runs
async def credit_get(
    who: Annotated[str | None, typer.Argument(metavar="[ADDRESS]", help="Owner; your address if left out.")] = None,
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print the credits of an address."""
    owner = wallet(key).address if who is None else address(who)
    async with as_reader(book) as grid:
        credits = await (await grid.wallet_of(owner)).credits
    print(shown(wei_of(credits), wei=wei))


@credit.command("transfer")
@runs
async def credit_transfer(
    to: Annotated[str, typer.Argument(metavar="ADDRESS", help="Receiver of the credits.")],
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
            f"Transfer {shown(given_wei, wei=False)} credits of {grid.address} to {receiver}? This cannot be undone.",
            force=force,
        )
        with with_transaction(await grid.wallet.transfer(receiver, credits_of(given_wei))):
            left = await grid.wallet.credits
            print_result(f"{shown(given_wei, wei=False)} credits given to {receiver}; {left:f} are left.")


@credit.command("mint")
@runs
async def credit_mint(
    to: Annotated[str, typer.Argument(metavar="ADDRESS", help="Receiver of the credits.")],
    value: Amount,
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Create credits (minter's key)."""
    receiver, made_wei = address(to), amount(value, wei=wei)
    async with as_sender(key, book) as session:
        receipt = await session.writer.mint(receiver, made_wei)
        with with_transaction(receipt.tx_hash):
            now = shown(await session.chain.balance(receiver), wei=False)
            print_result(f"{shown(made_wei, wei=False)} credits created for {receiver}, who has {now} now.")


@allowance.command("get")
@runs
async def allowance_get(wei: InWei = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Print how many of your credits the grid may lock for jobs."""
    owner = wallet(key).address
    async with as_reader(book) as grid:
        credits = await (await grid.wallet_of(owner)).allowance
    print(shown(wei_of(credits), wei=wei))


@allowance.command("set")
@runs
async def allowance_set(
    value: Amount, wei: InWei = False, force: Force = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None
) -> None:  # fmt: skip
    """Let the grid lock this many of your credits in all; 0 revokes the allowance.

    `dps submit` sets the allowance that it needs.
    """
    allowed_wei = amount(value, wei=wei)
    async with as_customer(key, book) as grid:
        confirm(f"Let the grid lock {shown(allowed_wei, wei=False)} credits of {grid.address}?", force=force)
        transaction = await grid.wallet.set_allowance(credits_of(allowed_wei))
        allowed = f"The grid may lock {shown(allowed_wei, wei=False)} credits of {grid.address}."
        print_result(allowed, f"transaction {transaction}")
