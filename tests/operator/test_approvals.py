"""New measurements of approved providers are approved without a person; prices, and what slips in late, are not."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.lifecycle.job import Label
from deepgrid.operator.approvals import approve_unless_changed, waiting_proposals
from tests.chain.grid import HARDWARE, LABELS, PRICES
from tests.operator.conftest import Office

OWN = tuple(label for label in LABELS if label.key != "os")
MEASURED = (*OWN, Label("compute.gflops", "12.50"), Label("os", "linux"))
DEARER = replace(PRICES, cpu_wei_per_minute=2 * PRICES.cpu_wei_per_minute)


async def test_new_measurements_are_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    (proposal,) = await waiting_proposals(office.session)
    assert proposal.concern == ""
    assert await approve_unless_changed(office.session, provider.address)
    standing = await office.people.chain.provider(provider.address)
    assert (standing.labels, standing.waiting_for_approval) == (MEASURED, False)
    assert await waiting_proposals(office.session) == []
    assert not await approve_unless_changed(office.session, provider.address)


async def test_a_price_waits_for_a_person(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, DEARER, MEASURED)
    (proposal,) = await waiting_proposals(office.session)
    assert proposal.concern == "its prices would change"
    assert not await approve_unless_changed(office.session, provider.address)
    assert (await office.people.chain.provider(provider.address)).prices == PRICES


async def test_a_proposal_replaced_after_the_look_is_not_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    (harmless,) = await waiting_proposals(office.session)
    assert harmless.concern == ""
    await provider.register(HARDWARE, DEARER, MEASURED)
    assert not await approve_unless_changed(office.session, harmless.address)
    assert (await office.people.chain.provider(provider.address)).prices == PRICES


async def test_a_newcomer_waits_for_a_person(office: Office) -> None:
    newcomer = office.people.customer  # whoever registers is a provider
    await newcomer.register(HARDWARE, PRICES, LABELS)
    (proposal,) = await waiting_proposals(office.session)
    assert proposal.concern == "it is new"
    assert not await approve_unless_changed(office.session, newcomer.address)


async def test_a_banned_provider_is_not_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    await office.people.operator.ban_provider(provider.address)
    assert not await approve_unless_changed(office.session, provider.address)
