"""`dps operator retire` and `move-credits`: from the contracts of one release to those of another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deepgrid.chain.book import AddressBook
from deepgrid.chain.deploy.credit_move import move_credits
from deepgrid.chain.deploy.retirement import retire
from deepgrid.cli.access.grid import as_sender, shown
from deepgrid.cli.border import runs
from deepgrid.cli.options import DEFAULT_KEY, BookFile, KeyFile
from deepgrid.cli.standard_streams import print_result

OldBook = Annotated[Path, typer.Option("--from", metavar="FILE", help="Address book of the retired grid.")]

NEXT_AFTER_RETIREMENT = """\
The contracts hold no credits any more. Next, with the new release:
  dps operator deploy --book new.json ...        with the URLs and roles of this grid
  dps operator move-credits --from grid.json --book new.json"""
NEXT_AFTER_MOVE = """\
Next:
  hand out the new address book; services, operator and supervisors start with it
  each provider   dps provider register CLUSTER
  you             dps provider approve ADDRESS    of each
Allowances and claims are not moved: customers set an allowance again when they submit."""


@runs
async def retire_grid(key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Refuse new jobs, wait until all jobs are over, withdraw the platform's cut (admin's key).

    It may be interrupted and run again. Supervisors and operator must run meanwhile.
    """
    async with as_sender(key, book) as session:
        await retire(session.writer, session.chain, print_result)
    print_result(NEXT_AFTER_RETIREMENT)


@runs
async def move(old: OldBook, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Give all holders of a retired grid the same credits on the contracts of the address book (minter's key).

    It may be interrupted and run again: it mints only what is missing.
    """
    before = AddressBook.load(old)
    async with as_sender(key, book) as session:
        minted_wei = await move_credits(before, session.writer, session.chain, print_result)
    print_result(f"{shown(minted_wei, wei=False)} credits were minted; all holders have what they had.")
    print_result(NEXT_AFTER_MOVE)
