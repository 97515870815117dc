"""A client like the existing TypeScript SDK uses the whole grid unchanged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deployments.onemachine.grid import LocalGrid
from tests.clients import typescript_client
from tests.clients.typescript_client import CHECKS, Result

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

EXAMPLES = Path(__file__).parents[2] / "examples"
CREDIT = 10**18
GAS_WEI = 10**21
LOGGER_GRPC = "services-grpc"  # the port of the log service over gRPC


@pytest.fixture(scope="module")
def results(grid: LocalGrid, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The client's results by the name of the check. Its customer is new to the grid."""
    folder = tmp_path_factory.mktemp("client")
    customer, stranger = Wallet.create(folder / "customer"), Wallet.create(folder / "stranger")
    book = AddressBook.load(grid.book)
    grid.roles.make_accounts(customer.address)
    asyncio.run(give(grid, book, customer.address, stranger.address))
    typescript_client.build(check_types=False)  # tests/clients checks them
    settings = {
        "chainId": 179188, "rpcUrl": book.rpc_url, "wsUrl": book.ws_url, "metaScheduler": book.meta_scheduler,
        "graphqlUrl": f"{book.definitions_url}/graphql", "grpcWebUrl": book.logs_url,
        "grpcTarget": f"127.0.0.1:{grid.ports.port(LOGGER_GRPC)}", "grpcCertificates": None,
        "keyFile": str(folder / "customer"), "strangerKeyFile": str(folder / "stranger"),
        "examples": str(EXAMPLES), "cluster": "alpha",
    }  # fmt: skip
    return typescript_client.run(settings, folder / "settings.json")


async def give(grid: LocalGrid, book: AddressBook, customer: str, stranger: str) -> None:
    """Give gas to both, and credits to the customer."""
    node = grid.anvil.private()
    try:
        await node.batch([("anvil_setBalance", [address, hex(GAS_WEI)]) for address in (customer, stranger)])
    finally:
        await node.close()
    async with await Chain.connect(book) as chain:
        sender = Sender(chain, Wallet.load(grid.keys.file("admin")))
        await Writer(chain, sender).mint(customer, 10_000 * CREDIT)
        await sender.close()


@pytest.mark.parametrize("check", CHECKS)
def test_an_existing_client_works_unchanged(results: dict[str, Result], check: str) -> None:
    assert check in results, f"the client ended before it: {[*results]}"
    assert results[check].ok, results[check].error


def test_every_check_of_the_client_is_a_test(results: dict[str, Result]) -> None:
    assert set(results) == set(CHECKS)
