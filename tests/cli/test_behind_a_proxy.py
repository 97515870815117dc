"""All of a customer's requests work through nginx with the file of `dps services proxy`, over TLS."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.book import AddressBook
from tests.cli.live import EXAMPLE, Dps, Live, Party, Wire, services_of
from tests.services.edge_support import Edge, running_edge, short_folder

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def proxy(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """A proxy in front of its own services."""
    with short_folder() as folder:
        sockets, state = folder / "services", folder / "proxy"
        state.mkdir()
        listen = services_of(live.address_book(), tmp_path_factory.mktemp("services"), "--sockets", str(sockets))
        with listen, running_edge(state, sockets, tls=True) as edge:
            yield edge


@pytest.fixture
async def secure(
    dps: Dps, proxy: Edge, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Dps]:
    """The command in a new process that reads the authorities. The addresses of its book need TLS."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(proxy.file.parent / "server.pem", proxy.file.parent / "server.key")
    async with Wire(live.address_book().rpc_url, tls) as node:
        book = live.address_book().model_copy(
            update={"rpc_url": node.url, "ws_url": None, "definitions_url": proxy.url, "logs_url": proxy.url}
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority))
        yield dataclasses.replace(dps, book=book.save(tmp_path / "secure.json"), forker=None)


async def test_a_customer_submits_through_the_proxy(secure: Dps, provider: Party) -> None:
    done = await secure.run("submit", EXAMPLE, "--credits", "100")
    assert done.status == 0, done.err
    assert "submitted" in done.out
    listed = await secure.run("job", "list")
    assert (listed.status, "pending" in listed.out) == (0, True)


async def test_the_address_book_names_the_authority(secure: Dps, proxy: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    book = AddressBook.load(secure.book).model_copy(update={"authorities": authority_of(proxy)})
    book.save(secure.book)
    done = await secure.run("submit", EXAMPLE, "--credits", "100")
    assert done.status == 0, done.err
    assert "submitted" in done.out


async def test_the_contracts_are_checked_with_the_authority_alone(
    secure: Dps, proxy: Edge, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call has it as an option. Later calls find it in the book."""
    monkeypatch.delenv("SSL_CERT_FILE")
    given = await secure.run("operator", "deploy", "--authorities", str(proxy.authority))
    assert (given.status, "nothing was sent" in given.out) == (0, True), given.err
    assert AddressBook.load(secure.book).authorities == authority_of(proxy)
    again = await secure.run("operator", "deploy")
    assert (again.status, "nothing was sent" in again.out) == (0, True), again.err


async def test_a_certificate_of_nobody_is_refused(secure: Dps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    done = await secure.run("credit", "get")
    assert (done.status, "Traceback" in done.err) == (2, False)


async def test_answers_carry_one_policy_and_the_proxy_adds_hsts(proxy: Edge) -> None:
    trusted = ssl.create_default_context(cafile=str(proxy.authority))
    async with httpx.AsyncClient(verify=trusted) as client:
        answer = await client.get(f"{proxy.url}/v1/health")
        too_large = await client.post(f"{proxy.url}/v1/definitions", content=b"x" * 2_000_000)
    assert answer.status_code == httpx.codes.OK
    assert answer.headers.get_list("strict-transport-security") == ["max-age=31536000"]
    assert too_large.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def authority_of(proxy: Edge) -> str:
    assert proxy.authority is not None
    return proxy.authority.read_text()
