"""A grid is deployed once, even if its runs are killed at any point and any number of times."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.deploy import DeploySettings, Earlier, Roles, deploy, deploy_to_book
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, ConfigurationError, ContractError
from tests.chain.anvil import Anvil
from tests.chain.bare import in_pool
from tests.chain.grid import Grid

ENDPOINTS = {"rpc_url": "http://127.0.0.1:1", "definitions_url": "http://127.0.0.1:2", "logs_url": "http://127.0.0.1:3"}
ROLE = "METASCHEDULER_ROLE"


async def test_an_existing_grid_is_kept_and_gets_missing_roles(grid: Grid) -> None:
    admin = Wallet.load(grid.operator_key)
    second = Roles.all_of(grid.new_key("second-operator").address)
    kept = await deploy(grid.anvil.url, admin, second, Earlier(grid.book))
    assert (kept.meta_scheduler, kept.credit) == (grid.book.meta_scheduler, grid.book.credit)
    assert (kept.provider_manager, kept.first_block) == (grid.book.provider_manager, grid.book.first_block)
    assert kept.sent == 2
    async with await Chain.connect(grid.book) as chain:
        assert await chain.has_role(ROLE, second.assign[0])
        assert await chain.has_role(ROLE, second.approve[0], "ProviderManager")
        head = (await chain.head()).number
        assert (await deploy(grid.anvil.url, admin, second, Earlier(grid.book))).sent == 0
        assert (await chain.head()).number == head


async def test_roles_may_have_separate_keys(grid: Grid) -> None:
    admin = Wallet.load(grid.operator_key)
    assigner, panicker, approver = (grid.new_key(f"duty-{name}").address for name in ("assign", "panic", "approve"))
    said: list[str] = []
    duties = Roles((assigner,), (panicker,), (approver,))
    await deploy(grid.anvil.url, admin, duties, Earlier(grid.book), tell=said.append)
    assert f"{approver} approves providers from now on" in said
    async with await Chain.connect(grid.book) as chain:
        for contract, holders in {"MetaScheduler": {assigner, panicker}, "ProviderManager": {approver}}.items():
            for who in (assigner, panicker, approver):
                assert await chain.has_role(ROLE, who, contract) == (who in holders)


async def test_only_an_admin_grants_roles(grid: Grid) -> None:
    stranger = grid.new_key("would-be-admin")
    with pytest.raises(ContractError, match="lacks the role"):
        await deploy(grid.anvil.url, stranger, Roles.all_of(stranger.address), Earlier(grid.book))


async def test_book_of_a_lost_chain_is_an_error_or_replaced(grid: Grid) -> None:
    admin = Wallet.load(grid.operator_key)
    duties = Roles.all_of(admin.address)
    lost = grid.book.model_copy(update={"credit": "0x" + "ab" * 20})
    with pytest.raises(ConfigurationError, match="Credit at 0xabab.* has caught up"):
        await deploy(grid.anvil.url, admin, duties, Earlier(lost))
    fresh = await deploy(grid.anvil.url, admin, duties, Earlier(lost, replace_lost=True))
    assert fresh.meta_scheduler != grid.book.meta_scheduler
    found = grid.book.model_copy(
        update={name: getattr(fresh, name) for name in ("credit", "provider_manager", "meta_scheduler", "first_block")}
    )
    async with await Chain.connect(found) as chain:
        assert await chain.has_role("METASCHEDULER_CONTRACT_ROLE", fresh.meta_scheduler, "ProviderManager")
        assert await chain.job_count() == 0
    mixed = grid.book.model_copy(update={"credit": fresh.credit})
    with pytest.raises(ConfigurationError, match="do not belong together"):
        await deploy(grid.anvil.url, admin, duties, Earlier(mixed))


async def test_book_of_another_chain_is_not_overwritten(grid: Grid, tmp_path: Path) -> None:
    admin = grid.new_key("foreign-admin")
    foreign = grid.book.model_copy(update={"chain_id": 179188}).save(tmp_path / "grid.json")
    before = foreign.read_bytes()
    with pytest.raises(ConfigurationError, match="chain 179188, the node at .* is on chain 31337"):
        await deploy_to_book(foreign, grid.anvil.url, admin, Roles.all_of(admin.address), ENDPOINTS)
    assert foreign.read_bytes() == before
    assert grid.anvil.call("eth_getTransactionCount", admin.address, "pending") == "0x0"
    assert [path.name for path in tmp_path.iterdir()] == ["grid.json"]


class Killed(BaseException):
    """Ends a run as a kill does: no later step runs."""


class Doom:
    """Kills a run before its `step`-th transaction is sent, or after it was mined and before the caller knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._send = Sender.send
        self.calls = 0
        self.fatal_call = -1
        self.after = False
        doom = self

        async def send(sender: Sender, call: Call, **options: object) -> Receipt:
            number, doom.calls = doom.calls, doom.calls + 1
            if number == doom.fatal_call and not doom.after:
                raise Killed
            receipt = await doom._send(sender, call)
            if number == doom.fatal_call:
                raise Killed
            return receipt

        monkeypatch.setattr(Sender, "send", send)


@pytest.mark.parametrize("after", [False, True], ids=["before-it-is-sent", "after-it-was-mined"])
async def test_a_deployment_killed_at_any_step_is_continued_by_the_next_run(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """A deployment that is killed at each of its transactions in turn still sends each once."""
    admin = grid.new_key(f"mortal-{after}")
    doom = Doom(monkeypatch)
    doom.after = after
    where = tmp_path / "grid.json"
    duties = Roles((admin.address,), (), (admin.address,))
    transactions = 6
    for step in range(transactions):  # each run does the first missing step, or dies before the second
        doom.calls, doom.fatal_call = 0, 0 if after or step == 0 else 1
        with pytest.raises(Killed):
            await deploy_to_book(where, grid.anvil.url, admin, duties, ENDPOINTS)
        assert not where.exists()
    doom.fatal_call = -1
    book, sent = await deploy_to_book(where, grid.anvil.url, admin, duties, ENDPOINTS)
    assert AddressBook.load(where) == book
    assert sent == (0 if after else 1)
    assert grid.anvil.call("eth_getTransactionCount", admin.address, "latest") == hex(transactions)
    assert [path.name for path in tmp_path.iterdir()] == ["grid.json"]
    assert (await deploy_to_book(where, grid.anvil.url, admin, duties, ENDPOINTS)) == (book, 0)


async def test_a_deployment_waits_for_transactions_in_the_pool(
    idle_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may end while its transaction waits. The next run does not send it again."""
    admin = Wallet.create(tmp_path / "keys" / "admin")
    idle_anvil.fund(admin.address)
    where = tmp_path / "book" / "grid.json"
    duties = Roles((admin.address,), (), (admin.address,))
    impatient = DeploySettings(in_flight_wait_s=0.1)
    monkeypatch.setattr(Sender, "send", functools.partialmethod(Sender.send, timeout_s=1.5))
    for step in range(6):
        with pytest.raises(ChainError, match="was not mined within"):
            await deploy_to_book(where, idle_anvil.url, admin, duties, ENDPOINTS, settings=impatient)
        assert in_pool(idle_anvil, admin.address) == [step]
        with pytest.raises(ChainError, match="Try again when they are mined"):
            await deploy_to_book(where, idle_anvil.url, admin, duties, ENDPOINTS, settings=impatient)
        idle_anvil.mine()
    _book, sent = await deploy_to_book(where, idle_anvil.url, admin, duties, ENDPOINTS)
    assert sent == 0
    assert idle_anvil.call("eth_getTransactionCount", admin.address, "latest") == "0x6"


async def test_an_unfinished_deployment_belongs_to_its_key(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = grid.new_key("first-deployer"), grid.new_key("other-deployer")
    where = tmp_path / "grid.json"
    Doom(monkeypatch).fatal_call = 1
    with pytest.raises(Killed):
        await deploy_to_book(where, grid.anvil.url, first, Roles.all_of(first.address), ENDPOINTS)
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match=f"unfinished deployment on chain .* by {first.address}"):
        await deploy_to_book(where, grid.anvil.url, other, Roles.all_of(other.address), ENDPOINTS)
    assert grid.anvil.call("eth_getTransactionCount", other.address, "pending") == "0x0"


async def test_a_nonce_taken_by_another_program_costs_only_one_contract(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is killed between draft and transaction. The key then sends another, so the draft's address stays empty."""
    admin = grid.new_key("shared-deployer")
    where = tmp_path / "grid.json"
    Doom(monkeypatch).fatal_call = 0
    with pytest.raises(Killed):
        await deploy_to_book(where, grid.anvil.url, admin, Roles.all_of(admin.address), ENDPOINTS)
    monkeypatch.undo()
    async with await Chain.connect(grid.book) as chain:
        sender = Sender(chain, admin)
        await sender.send(Call("something else", admin.address, "0x"))
        await sender.close()
        head = (await chain.head()).number
        book, sent = await deploy_to_book(where, grid.anvil.url, admin, Roles.all_of(admin.address), ENDPOINTS)
        assert (sent, book.first_block) == (6, head + 1)
