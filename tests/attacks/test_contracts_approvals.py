"""A provider tries to get a proposal approved that differs from the one that the operator read."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_hardware, coded_labels, coded_prices
from deepgrid.chain.offers import proposal_hash
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Label, Prices, Provider
from deepgrid.operator.approvals import approve, read_proposals
from deepgrid.operator.session import OperatorSession, OperatorSettings
from deployments.onemachine.node.chain_setup import approve_providers
from deployments.onemachine.parties.party_plan import OPERATOR, KeyRing
from tests.attacks.market import Market, open_market, operator_wallet
from tests.chain.grid import HARDWARE, LABELS, PRICES, Grid, running_grid
from tests.waiting import until

UNCHANGED_S = 600
THOUSANDFOLD = Prices(*(1000 * wei for wei in (PRICES.gpu_wei_per_minute, PRICES.cpu_wei_per_minute, 10**14)))
CHEAPER = replace(PRICES, cpu_wei_per_minute=PRICES.cpu_wei_per_minute // 2)
_label = itertools.count()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("approvals")) as grid:
        yield grid


@pytest.fixture
async def market(grid: Grid) -> AsyncIterator[Market]:
    async with open_market(grid, f"approvals{next(_label)}") as market:
        yield market


async def looked_at(market: Market) -> Provider:
    """Return the provider's proposal as the operator reads it."""
    proposed = await market.chain.proposal(market.people.provider.address)
    assert proposed is not None
    return proposed


async def prices_in_force(market: Market) -> Prices:
    return (await market.chain.provider(market.people.provider.address)).prices


@pytest.mark.attack(
    "a higher price is mined just before the approval, in the same block",
    attacker="a provider",
    gain="nothing: the old prices stay in force",
    defence="approveProposal names the hash of the proposal that was read",
)
async def test_a_proposal_replaced_in_the_block_of_its_approval(grid: Grid, market: Market) -> None:
    provider, operator = market.people.provider, market.people.operator
    await provider.register(HARDWARE, CHEAPER, LABELS)
    seen = proposal_hash(await looked_at(market))
    head = await market.chain.head()
    grid.anvil.call("evm_setAutomine", False)
    try:
        approving = asyncio.create_task(operator.approve_proposal(provider.address, seen))
        await until(lambda: waiting(grid) == 1)
        front_run(grid, market, THOUSANDFOLD)
        await until(lambda: waiting(grid) == 2)
        grid.anvil.mine()
    finally:
        grid.anvil.call("evm_setAutomine", True)
    with pytest.raises(ContractError):
        await approving
    mined = grid.anvil.call("eth_getBlockByNumber", hex(head.number + 1), True)["transactions"]
    assert [sent["from"] for sent in mined] == [provider.address.lower(), operator.address.lower()]
    assert await prices_in_force(market) == PRICES
    assert (await looked_at(market)).prices == THOUSANDFOLD


def waiting(grid: Grid) -> int:
    """Return the number of transactions that wait to be mined."""
    return int(grid.anvil.call("txpool_status")["pending"], 16)


def front_run(grid: Grid, market: Market, prices: Prices) -> None:
    """Register as the provider for a higher fee than the operator's, to be mined first."""
    arguments = coded_hardware(HARDWARE), coded_prices(prices), coded_labels(LABELS)
    provider = market.people.provider.address
    grid.anvil.call("anvil_impersonateAccount", provider)
    call = {
        "from": provider, "to": grid.book.provider_manager, "gas": hex(3_000_000), "gasPrice": hex(10**12),
        "data": interface("ProviderManager").encode("register", *arguments),
    }  # fmt: skip
    grid.anvil.call("eth_sendTransaction", call)


@pytest.mark.attack(
    "a higher price replaces a measurement after the automatic flow has judged it",
    attacker="a provider",
    gain="nothing: the old prices stay in force",
    defence="the label flow approves by the hash of the proposal that it judged",
)
async def test_a_proposal_replaced_while_the_label_flow_runs(
    grid: Grid, market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = market.people.provider
    measured = (*(label for label in LABELS if label.key != "os"), Label("os", "bsd"))
    await provider.register(HARDWARE, PRICES, measured)
    settings = OperatorSettings(
        grid.book.save(tmp_path / "grid.json"), grid.operator_key, tmp_path, "http://127.0.0.1:1"
    )
    session = OperatorSession(settings, market.chain, operator_wallet(grid))
    approve_proposal = session.writer.approve_proposal

    async def late(*judged: Any) -> Receipt:
        await provider.register(HARDWARE, THOUSANDFOLD, measured)
        return await approve_proposal(*judged)

    monkeypatch.setattr(session.writer, "approve_proposal", late)
    proposal = next(one for one in await read_proposals(session) if one.address == provider.address)
    assert not await approve(session, proposal)
    await session.sender.close()
    session.close()
    assert await prices_in_force(market) == PRICES


@pytest.mark.attack(
    "a higher price just before an existing client's approve(address)",
    attacker="a provider",
    gain="nothing: the old prices stay in force",
    defence="approve(address) accepts only proposals that are unchanged for 10 minutes",
)
async def test_a_proposal_replaced_before_an_approval_by_address(grid: Grid, market: Market) -> None:
    provider, operator = market.people.provider, market.people.operator
    await provider.register(HARDWARE, CHEAPER, LABELS)
    grid.anvil.pass_time(UNCHANGED_S - 30)
    assert await market.refusal(operator, "ProviderManager", "approve", provider.address) == "ProposalTooRecent"
    grid.anvil.pass_time(60)
    await provider.register(HARDWARE, THOUSANDFOLD, LABELS)  # the old proposal could have been approved
    assert await market.refusal(operator, "ProviderManager", "approve", provider.address) == "ProposalTooRecent"
    assert await prices_in_force(market) == PRICES


@pytest.mark.attack(
    "a proposal is replaced while the one-machine grid approves its providers",
    attacker="a provider",
    gain="nothing: the replacement is read before it is approved",
    defence="the set-up approves by hash, and reads the proposal again after a refusal",
)
async def test_a_proposal_replaced_while_one_machine_is_set_up(
    grid: Grid, market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyRing(tmp_path, ("alpha",))
    alpha = Wallet.create(keys.file("alpha"))
    shutil.copy(grid.operator_key, keys.file(OPERATOR))
    grid.anvil.fund(alpha.address)
    provider = Writer(market.chain, Sender(market.chain, alpha))
    await provider.register(HARDWARE, PRICES, LABELS)
    approve, approved = Writer.approve_proposal, []

    async def late(self: Writer, address: str, looked_at: bytes) -> Receipt:
        approved.append(looked_at)
        if len(approved) == 1:
            await provider.register(HARDWARE, THOUSANDFOLD, LABELS)
        return await approve(self, address, looked_at)

    monkeypatch.setattr(Writer, "approve_proposal", late)
    await approve_providers(grid.book.save(tmp_path / "grid.json"), keys)
    await provider.sender.close()
    in_force = await market.chain.provider(alpha.address)
    assert approved == [proposal_hash(replace(in_force, prices=PRICES)), proposal_hash(in_force)]


@pytest.mark.attack(
    "a harmless proposal is sent again after 10 minutes, to pass its age on to the next one",
    attacker="a provider",
    gain="nothing: each change restarts the 10 minutes",
    defence="the time of the last change is stored with the hash",
)
async def test_a_proposal_does_not_inherit_the_age_of_another(grid: Grid, market: Market) -> None:
    provider, operator = market.people.provider, market.people.operator
    for prices in (THOUSANDFOLD, CHEAPER, THOUSANDFOLD):
        await provider.register(HARDWARE, prices, LABELS)
        grid.anvil.pass_time(UNCHANGED_S // 2)
    assert await market.refusal(operator, "ProviderManager", "approve", provider.address) == "ProposalTooRecent"
    assert await prices_in_force(market) == PRICES


@pytest.mark.attack(
    "labels with invalid UTF-8 look like labels that the operator wants",
    attacker="a provider",
    gain="nothing: such a proposal cannot be approved",
    defence="the client computes the hash from what it read, and never takes it from the chain",
)
async def test_labels_with_invalid_utf_8_cannot_be_approved(market: Market) -> None:
    provider, operator = market.people.provider, market.people.operator
    types = ["(uint64,uint64[],uint64[],uint64[])", "(uint256,uint256,uint256)", "(bytes,bytes)[]"]
    arguments = coded_hardware(HARDWARE), coded_prices(PRICES)
    selector = interface("ProviderManager").encode("register", *arguments, [])[:10]
    data = selector + encode(types, [*arguments, [(b"zone", b"north\xff")]]).hex()
    await market.send(provider, "ProviderManager", data)
    seen = await looked_at(market)
    assert seen.labels == (Label("zone", "north\ufffd"),)
    with pytest.raises(ContractError) as refused:
        await operator.approve_proposal(provider.address, proposal_hash(seen))
    assert refused.value.name == "ProposalChanged"


@pytest.mark.attack(
    "text moves between the keys and values of labels, for the same hash",
    attacker="a provider",
    gain="nothing: the hash differs",
    defence="the hash covers lengths and positions, by abi.encode",
)
async def test_the_same_text_in_other_labels_has_another_hash(market: Market) -> None:
    provider, operator = market.people.provider, market.people.operator
    await provider.register(HARDWARE, PRICES, (Label("os", "linux"), Label("gpu", "none")))
    seen = proposal_hash(await looked_at(market))
    for labels in ((Label("osl", "inux"), Label("gpu", "none")), (Label("os", "linuxgpu"), Label("", "none"))):
        await provider.register(HARDWARE, PRICES, labels)
        with pytest.raises(ContractError) as refused:
            await operator.approve_proposal(provider.address, seen)
        assert refused.value.name == "ProposalChanged"


@pytest.mark.attack(
    "approves itself, lifts its own ban, removes a competitor",
    attacker="a provider",
    gain="nothing",
    defence="METASCHEDULER_ROLE of the ProviderManager",
)
async def test_a_provider_can_approve_and_ban_no_provider(market: Market) -> None:
    provider = market.people.provider
    await provider.register(HARDWARE, THOUSANDFOLD, LABELS)
    seen = proposal_hash(await looked_at(market))
    tried = [("approveProposal", provider.address, seen)]
    tried += [(function, provider.address) for function in ("approve", "remove", "ban", "unban")]  # type: ignore[misc]
    for function, *args in tried:
        refused = await market.refusal(provider, "ProviderManager", function, *args)
        assert refused == "AccessControlUnauthorizedAccount", function
    assert await prices_in_force(market) == PRICES
