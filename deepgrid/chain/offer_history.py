"""What providers offered over a period, from the registry's events and the proposals behind them.

If an offer did not change since the start of the period, the current offer is used. Proposals are read from their
transactions, and older events page by page. So nodes need not keep old states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.billing.entries import Ledger, Span
from deepgrid.billing.usage.capacity import Capacity, OfferChange, Offers
from deepgrid.billing.usage.offer_versions import RegistryEntry, Step, needs_older, offer_changes
from deepgrid.chain.client import Chain
from deepgrid.chain.ledger import DEFAULTS, Books, LedgerSettings, batches, first_block, in_pages
from deepgrid.chain.node.contract import Event, interface
from deepgrid.chain.node.node_errors import making_sense
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Hardware

REGISTRY = "ProviderManager"
STEPS = {
    "ProviderWaitingForApproval": Step.PROPOSED,
    "ProviderApproved": Step.APPROVED,
    "ProviderRemoved": Step.REMOVED,
    "ProviderBanChanged": Step.BANNED,
}
MOST_PAGES_BACK = 500


@dataclass(frozen=True)
class UsageEntries:
    """The entries of a usage report: two periods, and what was offered in them."""

    now: Ledger
    before: Ledger
    offers: Offers


async def read_usage(books: Books, span: Span, before: Span) -> UsageEntries:
    """Read the chain once for a period and the one before it, which ends where the period begins."""
    whole = Span(before.since, span.until)
    ledger = await books.read_chain(whole)
    middle = await first_block(books.chain, span.since, await books.chain.head())
    return UsageEntries(
        now=ledger.part(middle, ledger.last_block),
        before=ledger.part(ledger.first_block, middle - 1),
        offers=await read_offers(books.chain, whole.since, books.provider),
    )


async def read_offers(
    chain: Chain,
    since: int,
    provider: str | None = None,
    settings: LedgerSettings = DEFAULTS,
    most_pages_back: int = MOST_PAGES_BACK,
) -> Offers:
    """Return what `provider`, or every provider, offered since then (unix seconds)."""
    head = await chain.head()
    start = await first_block(chain, since, head)
    entries = await _read_entries(chain, start, head.number, settings)
    for _ in range(most_pages_back):
        if start <= chain.book.first_block or not _incomplete(entries, since, provider):
            break
        end, start = start - 1, max(chain.book.first_block, start - settings.blocks_per_page)
        entries = await _read_entries(chain, start, end, settings) + entries
    present = {one.address: one for one in await chain.providers()}
    wanted = {*present, *(one.provider for one in entries)} if provider is None else {provider}
    changes: list[OfferChange] = []
    assumed = set()
    for address in sorted(wanted):
        own = [one for one in entries if one.provider == address]
        is_whole = start <= chain.book.first_block
        found, is_assumed = offer_changes(address, own, present.get(address), since, is_whole=is_whole)
        changes += found
        assumed |= {address} if is_assumed else set()
    return Offers(tuple(changes), {address: one.name for address, one in present.items()}, frozenset(assumed))


def _incomplete(entries: Sequence[RegistryEntry], since: int, provider: str | None) -> bool:
    """Return whether one of the requested providers needs older entries."""
    of = {one.provider for one in entries if provider in (None, one.provider)}
    return any(needs_older((one for one in entries if one.provider == address), since) for address in of)


async def _read_entries(chain: Chain, first: int, last: int, settings: LedgerSettings) -> list[RegistryEntry]:
    """Return the registry's entries in these blocks (inclusive), in order."""
    registry = interface(REGISTRY)

    async def read(low: int, high: int) -> list[Event]:
        topics = [registry.topic(name) for name in STEPS]
        logs = await chain.logs(chain.book.provider_manager, low, high, [topics])
        with making_sense("events"):
            return [event for event in map(registry.event, logs) if event is not None]

    events = await in_pages(first, last, read, settings)
    proposals = {one.tx_hash for one in events if STEPS[one.name] is Step.PROPOSED}
    proposed: dict[str, Capacity | None] = {}
    for some in batches(sorted(proposals), settings):
        answers = await chain.rpc.batch([("eth_getTransactionByHash", [tx_hash]) for tx_hash in some])
        with making_sense("a transaction"):
            proposed |= {
                tx: _proposed_in(chain, raw["to"], raw["input"]) for tx, raw in zip(some, answers, strict=True)
            }
    times: dict[int, int] = {}
    for numbers in batches(sorted({one.block for one in events}), settings):
        times |= {block.number: block.timestamp for block in await chain.blocks(numbers) if block is not None}
    return [
        RegistryEntry(one.args["addr"], _step(one), times.get(one.block, 0), proposed.get(one.tx_hash))
        for one in events
    ]


def _step(event: Event) -> Step:
    return Step.ADMITTED if event.args.get("status") is False else STEPS[event.name]


def _proposed_in(chain: Chain, to: str | None, call_data: str) -> Capacity | None:
    """Return the capacity in a call of `register`; None if the transaction called another contract."""
    if to is None or to.lower() != chain.book.provider_manager.lower():
        return None
    try:
        function, arguments = interface(REGISTRY).arguments(bytes.fromhex(call_data[2:]))
    except ChainError:
        return None
    if function != "register":
        return None
    nodes = arguments["hardware"]
    return Capacity.of_nodes(
        Hardware(tuple(nodes["gpusPerNode"]), tuple(nodes["cpusPerNode"]), tuple(nodes["memPerNode"]))
    )
