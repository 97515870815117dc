"""Fixtures for tests of `dps`: one live grid per session, and new parties for each test."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.cli.access.environment import NAMES
from deepgrid.cli.main import app
from tests.chain.anvil import Anvil
from tests.chain.grid import approve_waiting, build, pass_a_second
from tests.cli.live import CREDIT, EXAMPLE, HARDWARE, LABELS, PRICES, Dps, Live, Party, forking, party, services_of
from tests.cli.support import Invoke

_number = itertools.count()


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    anvil = Anvil(folder)
    anvil.start()
    try:
        grid = build(anvil, folder / "keys")
        with services_of(grid.book, folder) as url:
            book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url})
            yield Live(grid, book.save(folder / "grid.json"))
    finally:
        anvil.stop()


@pytest.fixture
async def chain(live: Live) -> AsyncIterator[Chain]:
    async with await Chain.connect(live.address_book()) as connected:
        yield connected


@pytest.fixture
async def operator(live: Live, chain: Chain) -> AsyncIterator[Party]:
    who = party(chain, Wallet.load(live.grid.operator_key))
    yield who
    await who.close()


@pytest.fixture
async def provider(live: Live, chain: Chain, operator: Party) -> AsyncIterator[Party]:
    """An approved provider whose cluster is called alpha."""
    who = party(chain, live.grid.new_key(f"provider-{next(_number)}"))
    await who.writer.register(HARDWARE, PRICES, LABELS)
    await approve_waiting(operator.writer, who.address)
    yield who
    await who.close()


@pytest.fixture(scope="session")
def forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a process that starts `dps` quickly."""
    with forking(tmp_path_factory.mktemp("forker") / "socket") as path:
        yield path


@pytest.fixture
async def dps(live: Live, forker: Path, operator: Party, tmp_path: Path) -> Dps:
    """The command of a customer with 1000 credits."""
    name = f"customer-{next(_number)}"
    wallet = live.grid.new_key(name)
    await operator.writer.mint(wallet.address, 1000 * CREDIT)
    return Dps(tmp_path, live.book, live.grid.keys / name, forker=forker)


@pytest.fixture
async def job_id(dps: Dps) -> int:
    """A pending job of the customer."""
    outcome = await dps.run("submit", EXAMPLE, "--credits", "100", "--affinities", "gpu:in:nvidia")
    found = re.fullmatch(r"job (\d+) submitted\n", outcome.out)
    assert found is not None, outcome
    return int(found[1])


@pytest.fixture
async def running_id(operator: Party, provider: Party, job_id: int) -> int:
    """The same job, running at alpha."""
    await operator.writer.meta_schedule(job_id, provider.address)
    await provider.writer.claim_next()
    await provider.writer.set_running(job_id, 0)
    await pass_a_second(provider.writer.chain)
    return job_id


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """The command, in process, with an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DPS_KEY_FILE", "DEEPGRID_BOOK", *NAMES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*args: str | Path, input: str | None = None) -> Result:
        return CliRunner().invoke(app, list(map(str, args)), input=input)

    return run
