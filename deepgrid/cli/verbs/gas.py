"""`dps gas`: the chain's native currency, which pays for transactions. Amounts have 18 decimals, like credits."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import address, amount, as_anyone, as_sender, shown, wallet
from deepgrid.cli.border import runs
from deepgrid.cli.options import DEFAULT_KEY, BookFile, InWei, KeyFile
from deepgrid.cli.standard_streams import print_result, with_transaction
from deepgrid.errors import InputError

gas = typer.Typer(help="Show or transfer the currency that pays for transactions.", no_args_is_help=True)


@gas.command("get")
@runs
async def gas_get(
    who: Annotated[str | None, typer.Argument(metavar="[ADDRESS]", help="Owner; your address if left out.")] = None,
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print an address's balance of the chain's native currency."""
    owner = wallet(key).address if who is None else address(who)
    async with as_anyone(book) as chain:
        print(shown(await chain.gas_money(owner), wei=wei))


@gas.command("transfer")
@runs
async def gas_transfer(
    to: Annotated[str, typer.Argument(metavar="ADDRESS", help="Receiver.")],
    value: Annotated[str, typer.Argument(metavar="AMOUNT", help="How much, such as 1 or 0.5.")],
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
                f"{session.address} has {shown(has_wei, wei=False)}, and the transaction itself has a cost.",
                next_step="Give less.",
            )
        confirm(f"Transfer {shown(given_wei, wei=False)} of {session.address} to {receiver}?", force=force)
        receipt = await session.writer.give_gas_money(receiver, given_wei)
        with with_transaction(receipt.tx_hash):
            left_wei = await session.chain.gas_money(session.address)
            print_result(f"{shown(given_wei, wei=False)} given to {receiver}; {shown(left_wei, wei=False)} is left.")
