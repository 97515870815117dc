"""Gives each holder of a retired grid the same credits on the contracts that follow it.

What a holder had is the sum of the old token's transfers up to the block in which the new contracts began. What he got
is the sum of the new token's mints. So it may run again at any time, and mints what is missing, whatever holders did
with old and new credits meanwhile. Only the token's standard event is read from the old contracts, because their other
calls may be those of an earlier release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.writer import Writer
from deepgrid.errors import ConfigurationError

BLOCKS_AT_ONCE = 2000
NOWHERE = "0x" + "0" * 40


async def move_credits(old: AddressBook, writer: Writer, new: Chain, tell: Callable[[str], None]) -> int:
    """Mint on the new contracts what holders of the old ones lack. Returns the minted wei.

    Raises ConfigurationError if the old contract still holds deposits or the platform's cut.
    """
    if old.chain_id != new.book.chain_id or old.credit == new.book.credit:
        raise ConfigurationError(
            "The two address books are not of two grids on one chain.", next_step="Name the old and the new book."
        )
    held = await _balances(new, old, new.book.first_block)
    if left := held.pop(old.meta_scheduler, 0):
        raise ConfigurationError(
            f"The old contract still holds {left} wei of deposits or of the platform's cut.",
            next_step="Run `dps operator retire` with the old address book and the release of its contracts.",
        )
    got = await _minted(new)
    missing = {holder: held[holder] - got[holder] for holder in sorted(held) if held[holder] > got[holder]}
    for holder, wei in missing.items():
        await writer.mint(holder, wei)
        tell(f"{holder} has its credits of the old grid.")
    return sum(missing.values())


async def _balances(chain: Chain, book: AddressBook, last_block: int) -> Counter[str]:
    """The balance of each holder of the book's token at the end of this block, in wei."""
    balances: Counter[str] = Counter()
    async for sender, receiver, wei in _transfers(chain, book.credit, book.first_block, last_block):
        balances[sender] -= wei
        balances[receiver] += wei
    del balances[NOWHERE]
    return +balances


async def _minted(chain: Chain) -> Counter[str]:
    """What each holder of the chain's token got by mints, in wei."""
    got: Counter[str] = Counter()
    head = (await chain.head()).number
    async for sender, receiver, wei in _transfers(chain, chain.book.credit, chain.book.first_block, head):
        if sender == NOWHERE:
            got[receiver] += wei
    return got


async def _transfers(chain: Chain, token: str, first: int, last: int) -> AsyncIterator[tuple[str, str, int]]:
    """Sender, receiver and wei of each transfer in these blocks, in order."""
    contract = interface("Credit")
    for start in range(first, last + 1, BLOCKS_AT_ONCE):
        end = min(last, start + BLOCKS_AT_ONCE - 1)
        wanted = {
            "address": token, "fromBlock": hex(start), "toBlock": hex(end), "topics": [contract.topic("Transfer")],
        }  # fmt: skip
        for log in await chain.rpc.call("eth_getLogs", wanted):
            with making_sense("transfers"):
                event = contract.event(log)
                assert event is not None
                transfer = (str(event.args["from"]), str(event.args["to"]), int(event.args["value"]))
            yield transfer
