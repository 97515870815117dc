"""`dps operator`: administers the contracts of the grid, and moves the grid to the contracts of another release.

Writes use the contract's setters. A new platform cut takes two calls: one announces it, a later one applies it
after the notice period.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from deepgrid.billing.credits import format_credits
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.retirement import move_credits, retire
from deepgrid.chain.node.values import Constants, Cut
from deepgrid.cli.access.grid import amount, as_anyone, as_sender, format_amount
from deepgrid.cli.display.screen import print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.lazy import group_with, project_verbs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, InWei, KeyFile
from deepgrid.cli.standard_streams import print_result, with_transaction
from deepgrid.cli.verbs.audit import audit
from deepgrid.cli.verbs.deploy import deploy_contracts
from deepgrid.client.display.text import plural
from deepgrid.errors import InputError

operator = typer.Typer(
    cls=group_with(TyperGroup, *project_verbs("operator")),
    help="Deploy and administer the contracts, run the meta-scheduler.",
    no_args_is_help=True,
)


operator.command("deploy")(deploy_contracts)
operator.command("audit")(audit)


# Name on the command line -> the contract's setter, and the unit of its value.
SETTERS = {
    "minimum": ("setMinimumAmount", "credits"),
    "cut": ("setDeepsquareCut", "percent"),
    "claim-timeout": ("setClaimJobTimeout", "minutes"),
    "cancellation-fee": ("setCancellationFeeMinute", "minutes"),
    "top-up-slice": ("setTopUpSliceDurationMin", "minutes"),
    "report-tolerance": ("setBillDurationDeltaMinute", "minutes"),
}


@operator.command("constants")
@runs
async def constants(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(SETTERS)}.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="Its new value.")] = None,
    apply_cut: Annotated[bool, typer.Option("--apply-cut", help="Apply the announced cut; any key may.")] = False,
    as_json: AsJson = False,
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print the constants of the contract, or set one of them (owner's key).

    A new cut is announced first. It takes effect with --apply-cut after the notice period.
    """
    if apply_cut:
        async with as_sender(key, book) as session:
            receipt = await session.writer.apply_cut()
            with with_transaction(receipt.tx_hash):
                print_result(f"The cut is {(await session.chain.cut()).percent} % for assignments from now on.")
    elif name is None:
        async with as_anyone(book) as chain:
            await _show(chain, as_json=as_json, wei=wei)
    else:
        setter, number = _setting(name, value, wei=wei)
        async with as_sender(key, book) as session:
            receipt = await session.writer.set_constant(setter, number)
            with with_transaction(receipt.tx_hash):
                cut = await session.chain.cut()
                print_result(
                    _announcement(cut) if name == "cut" else f"{name} is {value} {SETTERS[name][1]} from now on."
                )


@operator.command("withdraw")
@runs
async def withdraw(
    value: Annotated[str | None, typer.Argument(metavar="[AMOUNT]", help="Credits; all of it if left out.")] = None,
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Withdraw the platform's cut of settled jobs (admin's key)."""
    async with as_sender(key, book) as session:
        kept_wei = await session.chain.platform_cut()
        taken_wei = kept_wei if value is None else amount(value, wei=wei)
        if taken_wei == 0:
            print_result("There is no cut to withdraw.")
            return
        receipt = await session.writer.withdraw_cut(taken_wei)
        with with_transaction(receipt.tx_hash):
            left = format_credits(await session.chain.platform_cut())
            print_result(f"{format_credits(taken_wei)} credits withdrawn to {session.address}; {left} are left.")


@operator.command("open")
@runs
async def open_grid(key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Accept requests for new jobs again (admin's key)."""
    await _accept(True, "The grid accepts new jobs.", key, book)


@operator.command("close")
@runs
async def close_grid(key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Refuse requests for new jobs; jobs that exist continue and are settled (admin's key)."""
    said = "The grid refuses new jobs. Existing jobs continue. Open it again with `dps operator open`."
    await _accept(False, said, key, book)


async def _accept(accepted: bool, said: str, key: Path, book: Path | None) -> None:
    async with as_sender(key, book) as session:
        receipt = await session.writer.accept_requests(accepted)
    print_result(said, f"transaction {receipt.tx_hash}")


def _setting(name: str, value: str | None, *, wei: bool) -> tuple[str, int]:
    """Return the setter, and the value in the contract's unit. Raises InputError."""
    if name not in SETTERS:
        raise InputError(f"There is no constant {name[:60]!r}.", next_step=f"Use one of {', '.join(SETTERS)}.")
    setter, unit = SETTERS[name]
    if value is None:
        raise InputError(f"{name} needs a value in {unit}.", next_step=f"Write `dps operator constants {name} VALUE`.")
    if unit == "credits":
        return setter, amount(value, wei=wei)
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise InputError(f"{value[:60]!r} is not a number of {unit}.", next_step="Write a whole number.")
    return setter, int(value)


async def _show(chain: Chain, *, as_json: bool, wei: bool) -> None:
    figures, cut = await chain.constants(), await chain.cut()
    kept_wei, is_open = await chain.platform_cut(), await chain.accepts_requests()
    if as_json:
        print_json(_as_json(figures, cut, kept_wei, is_open=is_open))
        return
    print(f"minimum           {format_amount(figures.minimum_wei, wei=wei)} {'wei' if wei else 'credits'}")
    print(f"cut               {cut.percent} %")
    if cut.next_from:
        print(f"                  {_announcement(cut)}")
    print(f"claim-timeout     {plural(figures.claim_timeout_minutes, 'minute')}")
    print(f"cancellation-fee  {plural(figures.cancellation_fee_minutes, 'minute')}")
    print(f"top-up-slice      {plural(figures.top_up_slice_minutes, 'minute')}")
    print(f"report-tolerance  {plural(figures.report_tolerance_minutes, 'minute')}")
    print(f"New jobs are {'accepted' if is_open else 'refused'}.")
    print(f"{format_credits(kept_wei)} credits of cut can be withdrawn.")


def _announcement(cut: Cut) -> str:
    day = datetime.fromtimestamp(cut.next_from, UTC)
    return f"A cut of {cut.next_percent} % is announced. Apply it from {day:%Y-%m-%d %H:%M} UTC on with --apply-cut."


def _as_json(figures: Constants, cut: Cut, kept_wei: int, *, is_open: bool) -> dict[str, object]:
    minutes = {name: figure for name, figure in asdict(figures).items() if name.endswith("_minutes")}
    return {
        "minimum_wei": str(figures.minimum_wei),
        "cut_percent": cut.percent,
        "announced_cut_percent": cut.next_percent if cut.next_from else None,
        "announced_cut_from": cut.next_from or None,
        **minutes,
        "accepts_new_jobs": is_open,
        "platform_cut_wei": str(kept_wei),
    }


Unclaimed = Annotated[
    int,
    typer.Option(
        "--unclaimed-wei", metavar="WEI", min=0, help="Most that the old contracts may keep; `retire` says how much."
    ),
]
OldBook = Annotated[Path, typer.Option("--from", metavar="FILE", help="Address book of the retired grid.")]

UNCLAIMED = """\
{wei} wei stay in the contracts: another account sent them there, and no call pays them out. The contracts owe
nothing else. Give `--unclaimed-wei {wei}` to `dps operator move-credits`."""
NEXT_AFTER_RETIREMENT = """\
The contracts owe no credits any more. Next, with the new release:
  dps operator deploy --book new.json ...        with the URLs and roles of this grid
  dps operator move-credits --from grid.json --book new.json"""
NEXT_AFTER_MOVE = """\
Next:
  hand out the new address book; services, operator and supervisors start with it
  each provider   dps provider register CLUSTER
  you             dps provider approve ADDRESS    of each
Allowances and claims are not moved: customers set an allowance again when they submit."""


@operator.command("retire")
@runs
async def retire_grid(key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Refuse new jobs, wait until all jobs are over, withdraw the platform's cut (admin's key).

    It may be interrupted and run again. Supervisors and operator must run meanwhile.
    """
    async with as_sender(key, book) as session:
        unclaimed_wei = await retire(session.writer, session.chain, print_result)
    if unclaimed_wei:
        print_result(UNCLAIMED.format(wei=unclaimed_wei))
    print_result(NEXT_AFTER_RETIREMENT)


@operator.command("move-credits")
@runs
async def move(old: OldBook, key: KeyFile = DEFAULT_KEY, book: BookFile = None, unclaimed: Unclaimed = 0) -> None:
    """Give all holders of a retired grid the same credits on the contracts of the address book (minter's key).

    It may be interrupted and run again: it mints only what is missing.
    """
    before = AddressBook.load(old)
    async with as_sender(key, book) as session:
        minted_wei = await move_credits(before, session.writer, session.chain, print_result, unclaimed)
    print_result(f"{format_credits(minted_wei)} credits were minted; all holders have what they had.")
    print_result(NEXT_AFTER_MOVE)
