"""New measurements of approved providers are approved automatically. Price changes and late replacements are not."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.lifecycle.job import Label
from deepgrid.operator.approvals import approve, read_proposals
from tests.chain.grid import HARDWARE, LABELS, PRICES
from tests.operator.office import Office

OWN = tuple(label for label in LABELS if label.key != "os")
MEASURED = (*OWN, Label("compute.gflops", "12.50"), Label("os", "linux"))
DEARER = replace(PRICES, cpu_wei_per_minute=2 * PRICES.cpu_wei_per_minute)


async def test_new_measurements_are_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    (proposal,) = await read_proposals(office.session)
    assert proposal.concern == ""
    assert await approve(office.session, proposal)
    standing = await office.people.chain.provider(provider.address)
    assert (standing.labels, standing.waiting_for_approval) == (MEASURED, False)
    assert await read_proposals(office.session) == []
    assert not await approve(office.session, proposal)


async def test_a_price_waits_for_a_person(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, DEARER, MEASURED)
    (proposal,) = await read_proposals(office.session)
    assert proposal.concern == "its prices would change"
    assert not await approve(office.session, proposal)
    assert (await office.people.chain.provider(provider.address)).prices == PRICES


async def test_a_proposal_replaced_after_the_look_is_not_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    (harmless,) = await read_proposals(office.session)
    assert harmless.concern == ""
    await provider.register(HARDWARE, DEARER, MEASURED)
    assert not await approve(office.session, harmless)
    assert (await office.people.chain.provider(provider.address)).prices == PRICES


async def test_a_newcomer_waits_for_a_person(office: Office) -> None:
    newcomer = office.people.customer  # any account that registers is a provider
    await newcomer.register(HARDWARE, PRICES, LABELS)
    (proposal,) = await read_proposals(office.session)
    assert proposal.concern == "it is new"
    assert not await approve(office.session, proposal)


async def test_a_banned_provider_is_not_approved(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    (proposal,) = await read_proposals(office.session)
    await office.people.operator.ban_provider(provider.address)
    assert not await approve(office.session, proposal)
