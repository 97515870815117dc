"""The offers of a provider over time follow the registry's entries. What is not known is said."""

from __future__ import annotations

import pytest

from deepgrid.billing.entries import Span
from deepgrid.billing.usage.capacity import NOTHING, Capacity, OfferChange, Offers
from deepgrid.billing.usage.offer_versions import RegistryEntry, Step, needs_older, offer_changes
from deepgrid.lifecycle.job import Hardware, Prices, Provider
from tests.billing.histories import ME

SMALL, LARGE = Capacity(4, 1000, 0), Capacity(8, 2000, 1)
SINCE = 1000


def registered(offered: Capacity, *, approved: bool = True, banned: bool = False) -> Provider:
    nodes = Hardware((offered.gpus,), (offered.cpus,), (offered.mem_mb,))
    return Provider(ME, nodes, Prices(1, 1, 1), (), approved, banned)


def entry(step: Step, at: int, proposed: Capacity | None = None) -> RegistryEntry:
    return RegistryEntry(ME, step, at, proposed)


def offers(
    entries: list[RegistryEntry], present: Provider | None, *, is_whole: bool = True
) -> tuple[list[tuple[int, Capacity]], bool]:
    found, assumed = offer_changes(ME, entries, present, SINCE, is_whole=is_whole)
    return [(one.at, one.offered) for one in found], assumed


def test_an_offer_without_a_change_is_the_present_one_also_if_nothing_older_is_known() -> None:
    assert offers([], registered(SMALL), is_whole=False) == ([(SINCE, SMALL)], False)
    waiting = [entry(Step.PROPOSED, 1500, LARGE)]
    assert offers(waiting, registered(SMALL), is_whole=False)[0][0] == (SINCE, SMALL)
    assert not needs_older(waiting, SINCE)


def test_an_approved_change_counts_from_its_approval_on() -> None:
    entries = [
        entry(Step.PROPOSED, 10, SMALL), entry(Step.APPROVED, 20), entry(Step.PROPOSED, 1200, LARGE),
        entry(Step.APPROVED, 1300),
    ]  # fmt: skip
    found, assumed = offers(entries, registered(LARGE), is_whole=False)
    assert (found, assumed) == ([(SINCE, SMALL), (1200, SMALL), (1300, LARGE)], False)
    assert not needs_older(entries, SINCE)


def test_a_provider_that_joins_offered_nothing_before() -> None:
    entries = [entry(Step.PROPOSED, 1100, SMALL), entry(Step.APPROVED, 1200)]
    assert offers(entries, registered(SMALL)) == ([(SINCE, NOTHING), (1100, NOTHING), (1200, SMALL)], False)


def test_the_last_of_several_proposals_is_approved() -> None:
    entries = [entry(Step.PROPOSED, 1100, SMALL), entry(Step.PROPOSED, 1150, LARGE), entry(Step.APPROVED, 1200)]
    assert offers(entries, registered(LARGE))[0][-1] == (1200, LARGE)


def test_a_banned_provider_offers_nothing_until_it_is_admitted_again() -> None:
    entries = [entry(Step.BANNED, 1100), entry(Step.ADMITTED, 1200)]
    found, assumed = offers(entries, registered(SMALL), is_whole=False)
    assert (found, assumed) == ([(SINCE, SMALL), (1100, NOTHING), (1200, SMALL)], False)
    assert offers([], registered(SMALL, banned=True))[0] == [(SINCE, NOTHING)]
    assert offers([entry(Step.ADMITTED, 1200)], registered(SMALL))[0] == [(SINCE, NOTHING), (1200, SMALL)]


def test_a_removed_provider_offered_until_its_removal() -> None:
    entries = [entry(Step.PROPOSED, 10, SMALL), entry(Step.APPROVED, 20), entry(Step.REMOVED, 1500)]
    assert offers(entries, None) == ([(SINCE, SMALL), (1500, NOTHING)], False)


@pytest.mark.parametrize("hidden", [True, False])
def test_an_offer_that_is_not_known_is_replaced_by_the_next_one_and_said(hidden: bool) -> None:
    """`hidden`: the proposal came through another contract, so its transaction does not show it."""
    entries = [entry(Step.PROPOSED, 1200, None if hidden else LARGE), entry(Step.APPROVED, 1300)]
    assert needs_older(entries, SINCE)
    found, assumed = offers(entries, registered(LARGE), is_whole=False)
    assert assumed
    assert found == [(SINCE, LARGE), (1200, LARGE), (1300, LARGE)]


def test_a_provider_that_is_gone_and_not_known_offers_nothing() -> None:
    assert offers([entry(Step.REMOVED, 1500)], None, is_whole=False) == ([(SINCE, NOTHING), (1500, NOTHING)], True)


def test_the_seconds_of_an_offer_are_cut_at_the_edges() -> None:
    both = Offers((OfferChange(ME, 0, SMALL), OfferChange(ME, 150, LARGE), OfferChange("0xElse", 0, LARGE)))
    assert both.seconds(ME, Span(100, 200)) == SMALL * 50 + LARGE * 50
    assert both.seconds(ME, Span(200, 300)) == LARGE * 100
    assert both.seconds("0xNobody", Span(0, 100)) == NOTHING
