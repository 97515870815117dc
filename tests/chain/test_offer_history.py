"""What a provider offered over time is read from a real registry, and both periods of a report from one reading."""

from __future__ import annotations

from pathlib import Path

from deepgrid.billing.entries import Span
from deepgrid.billing.usage.capacity import NOTHING, Capacity
from deepgrid.billing.usage.usage_figures import report
from deepgrid.chain.ledger import Books, LedgerSettings
from deepgrid.chain.offer_history import read_offers, read_usage
from deepgrid.lifecycle.job import Hardware
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import HARDWARE, LABELS, PRICES, Grid, People, approve_waiting

BEFORE, LARGER = Capacity.of_nodes(HARDWARE), Hardware((2, 2, 2), (8, 8, 8), (16000, 16000, 16000))
SHORT_PAGES = LedgerSettings(blocks_per_page=2, items_per_batch=2)


async def offer(people: People, hardware: Hardware) -> int:
    """Let the operator approve another offer of the provider. Returns the time of the approval."""
    await people.provider.register(hardware, PRICES, LABELS)
    await approve_waiting(people.operator, people.provider.address)
    return await people.chain.now() - 1  # a second passes after it


async def test_an_offer_is_known_before_and_after_its_change(grid: Grid, people: People) -> None:
    me, since = people.provider.address, await people.chain.now() + 10
    grid.anvil.pass_time(20)
    changed_at = await offer(people, LARGER)
    for settings in (LedgerSettings(), SHORT_PAGES):
        found = await read_offers(people.chain, since, me, settings)
        assert found.assumed == frozenset()
        assert found.seconds(me, Span(since, changed_at)) == BEFORE * (changed_at - since)
        assert found.seconds(me, Span(changed_at, changed_at + 60)) == Capacity.of_nodes(LARGER) * 60
    everybody = await read_offers(people.chain, since)
    assert everybody.seconds(me, Span(since, changed_at)) == BEFORE * (changed_at - since)


async def test_an_offer_that_is_too_old_to_find_is_assumed(grid: Grid, people: People) -> None:
    me, since = people.provider.address, await people.chain.now() + 10
    grid.anvil.pass_time(20)
    changed_at = await offer(people, LARGER)
    found = await read_offers(people.chain, since, me, SHORT_PAGES, most_pages_back=0)
    assert found.assumed == {me}
    assert found.seconds(me, Span(since, changed_at)) == Capacity.of_nodes(LARGER) * (changed_at - since)


async def test_a_ban_ends_the_offer_and_its_end_brings_it_back(grid: Grid, people: People) -> None:
    me, since = people.provider.address, await people.chain.now() + 1
    grid.anvil.pass_time(20)
    await people.operator.ban_provider(me)
    banned_at = await people.chain.now()
    grid.anvil.pass_time(30)
    await people.operator.unban_provider(me)
    admitted_at = await people.chain.now()
    found = await read_offers(people.chain, since, me)
    assert found.seconds(me, Span(since, banned_at)) == BEFORE * (banned_at - since)
    assert found.seconds(me, Span(banned_at, admitted_at)) == NOTHING
    assert found.seconds(me, Span(admitted_at, admitted_at + 5)) == BEFORE * 5


class SomeBooks(Books):
    """Books of a grid without old hot jobs."""

    async def hot(self) -> list[int]:
        return []


async def test_two_periods_from_one_reading_have_the_settlements_of_each(
    grid: Grid, people: People, tmp_path: Path
) -> None:
    me, since = people.provider.address, await people.chain.now() + 1
    grid.anvil.pass_time(5)
    paid, ends = [], []
    for _ in range(2):
        job_id = await people.running()
        grid.anvil.pass_time(130)
        await people.provider.settle(job_id, JobStatus.FINISHED, 2)
        settled = await people.chain.settlement(job_id)
        assert settled is not None
        paid.append((settled.paid_wei, settled.cut_wei, settled.refunded_wei, settled.billed_minutes))
        ends.append(settled.at)
        grid.anvil.pass_time(60)
    span, before = Span(ends[0] + 1, await people.chain.now() + 1), Span(since, ends[0] + 1)
    for provider in (me, None):
        books = SomeBooks("any", people.chain, tmp_path, provider)
        entries = await read_usage(books, span, before)
        found = report("any", provider, (span, entries.now), (before, entries.before), entries.offers)
        sums = [one.clusters[me] for one in (found.before, found.now)]
        assert [(one.paid_wei, one.cut_wei, one.refunded_wei, one.billed_minutes) for one in sums] == paid
        assert [one.used_s.cpus for one in sums] == [6 * 120] * 2
        assert sums[1].offered_s == BEFORE * (span.until - span.since)
        assert sums[0].jobs == sums[1].jobs == 1
