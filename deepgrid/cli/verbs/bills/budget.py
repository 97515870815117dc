"""`dps budget`: the credits that your submissions and top-ups may use per day, week or month."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.chain.book import AddressBook
from deepgrid.cli.access.address_book import find_book
from deepgrid.cli.access.grid import amount, as_anyone, wallet
from deepgrid.cli.display.screen import print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, Amount, AsJson, BookFile, InWei, KeyFile
from deepgrid.cli.standard_streams import print_result
from deepgrid.client.display.text import moment_utc
from deepgrid.client.spending.budgets import BINDS, Budget, BudgetKeeper, checked_per, write_budget

budget = typer.Typer(help="Limit the credits that you use per month.", no_args_is_help=True)


@budget.command("set")
@runs
async def set_budget(
    value: Amount,
    per: Annotated[str, typer.Option("--per", metavar="PERIOD", help="day, week or month, in UTC.")] = "month",
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Refuse submissions and top-ups of yours that exceed this many credits per period.

    The cost of jobs that were settled in the period counts, and what open jobs hold.
    """
    made = Budget(wei=str(amount(value, wei=wei)), per=checked_per(per))
    customer = wallet(key).address
    write_budget(AddressBook.load(await find_book(book)), customer, made)
    print_result(f"The budget of {customer} is {made.words}.", BINDS)


@budget.command("get")
@runs
async def get(as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Show your budget, and what is left of it."""
    async with as_anyone(book) as chain:
        found = await BudgetKeeper(chain, wallet(key).address).use()
    if as_json:
        print_json(
            found
            and {
                "budget_wei": found.budget.wei,
                "per": found.budget.per,
                "since": found.since,
                "spent_wei": str(found.spent_wei),
                "held_wei": str(found.held_wei),
                "left_wei": str(found.left_wei),
            }
        )
    elif found is None:
        print_result("You have no budget.")
    else:
        spent, held, left = map(format_credits, (found.spent_wei, found.held_wei, found.left_wei))
        since = moment_utc(found.since)
        print_result(
            f"{found.budget.words}: {spent} spent since {since}, {held} held by open jobs, {left} left.", BINDS
        )


@budget.command("remove")
@runs
async def remove(key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Remove your budget."""
    write_budget(AddressBook.load(await find_book(book)), wallet(key).address, None)
    print_result("You have no budget now.")
