"""A separate chain for the tests of the contracts, and a client that only knows the observed surface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chain.anvil import Anvil
from tests.chain.grid import build
from tests.contracts.client import Client
from tests.contracts.scene import CREDIT, Scene


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("contracts")
    anvil = Anvil(folder)
    anvil.start()
    try:
        grid = build(anvil, folder / "keys")
        client = Client(anvil.url, grid.book.meta_scheduler)
        operator = client.person(grid.operator_key.read_text().strip())
        provider, rival, customer = (client.person() for _ in range(3))
        client.send(operator, client.credit.functions.mint(customer, 10_000 * CREDIT))
        yield Scene(client, anvil, operator, provider, rival, customer)
    finally:
        anvil.stop()
