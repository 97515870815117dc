"""The calls that the signer sends: known functions of the grid's contracts, and the credits that each may cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.contract import interface
from deepgrid.errors import ChainError
from deepgrid.signer.refused import MALFORMED, Refused

LARGEST_DATA = 64 * 1024
REQUESTS = ("requestNewJob", "requestNewJobWithPermit", "requestNewJobWithWishes", "requestNewJobWithWishesAndPermit")

_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


@dataclass(frozen=True, slots=True)
class Costs:
    """Credits in wei of one call.

    `locks` leaves for a job, `transfers` for another account. `allows` is the allowance that the call sets.
    With `delegates` the grid may lock the allowance that is left.
    """

    locks: int = 0
    transfers: int = 0
    allows: int | None = None
    delegates: bool = False


@dataclass(frozen=True, slots=True)
class PageCall:
    """A checked call of the page."""

    function: str
    to: str
    data: str
    costs: Costs


def parse(raw: Any, book: AddressBook, owner: str) -> PageCall:
    """Return the call in the parameters of `eth_sendTransaction`. Raises Refused."""
    if not isinstance(raw, dict):
        raise Refused("This is not a transaction.", MALFORMED)
    if raw.get("from") is not None and str(raw["from"]).lower() != owner.lower():
        raise Refused("The transaction is of another account than the signer's.")
    if raw.get("chainId") is not None and _number(raw["chainId"]) != book.chain_id:
        raise Refused("The transaction is for another chain.")
    if _number(raw.get("value") or 0):
        raise Refused("The signer does not send the chain's own currency.")
    data = raw.get("data", raw.get("input"))
    if not isinstance(data, str) or len(data) > 2 * LARGEST_DATA or not _DATA.fullmatch(data):
        raise Refused("The transaction's data is malformed.", MALFORMED)
    if raw.get("input", data) != data:
        raise Refused("The transaction names two different data.", MALFORMED)
    to = str(raw.get("to")).lower()
    for name, address in (("MetaScheduler", book.meta_scheduler), ("Credit", book.credit)):
        if to == address.lower():
            function, arguments = _decode_call(name, bytes.fromhex(data[2:]))
            return PageCall(function, address, data, _costs(name, function, arguments, book))
    raise Refused("The transaction is for a contract that is not of this grid.")


def _decode_call(contract: str, data: bytes) -> tuple[str, dict[str, Any]]:
    try:
        return interface(contract).arguments(data)
    except ChainError:
        raise Refused("The transaction calls no function of the grid's contract.") from None


def _costs(contract: str, function: str, arguments: dict[str, Any], book: AddressBook) -> Costs:
    """Return the costs of a call. Every function that is not named here is refused."""
    match contract, function:
        case "MetaScheduler", "cancelJob" | "giveUpJob":
            return Costs()
        case "MetaScheduler", "topUpJob":
            return Costs(locks=arguments["amount"])
        case "MetaScheduler", "setDelegateSpendingAuthority":
            return Costs(delegates=arguments["delegateSpendingAuthority"])
        case "MetaScheduler", "setSpendingLimit":
            return Costs(delegates=arguments["limit"] != 0)
        case "MetaScheduler", name if name in REQUESTS:
            permit, delegates = arguments.get("permit"), arguments["delegateSpendingAuthority"]
            return Costs(arguments["lockedCredits"], allows=permit["value"] if permit else None, delegates=delegates)
        case "Credit", "transfer":
            return Costs(transfers=arguments["value"])
        case "Credit", "approve":
            if arguments["spender"].lower() != book.meta_scheduler.lower():
                raise Refused("The allowance is for another contract than the grid's.")
            return Costs(allows=arguments["value"])
    raise Refused("The signer does not send this function; use `dps` in a terminal.")


def _number(value: Any) -> int:
    try:
        return value if isinstance(value, int) else int(str(value), 16 if str(value).startswith("0x") else 10)
    except ValueError:
        raise Refused("A number of the transaction is malformed.", MALFORMED) from None
