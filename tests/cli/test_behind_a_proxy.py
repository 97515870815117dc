"""The examples of deployments/proxy are valid, and all of a customer's requests work through one with TLS."""

from __future__ import annotations

import dataclasses
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.book import AddressBook
from tests.cli.live import EXAMPLE, Dps, Live, Party
from tests.cli.nginx import PROXY, Proxy, program, running_nginx

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def proxy(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("nginx")
    book = live.address_book()
    with running_nginx(folder, book.definitions_url, book.rpc_url) as running:
        yield running


@pytest.fixture
def secure(dps: Dps, proxy: Proxy, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dps:
    """The command, as a new process that reads the authorities, with a book whose addresses lead to the proxy."""
    book = live.address_book().model_copy(
        update={"rpc_url": f"{proxy.url}/node", "ws_url": None, "definitions_url": proxy.url, "logs_url": proxy.url}
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority))
    return dataclasses.replace(dps, book=book.save(tmp_path / "secure.json"), forker=None)


async def test_a_customer_submits_through_the_proxy(secure: Dps, provider: Party) -> None:
    done = await secure.run("submit", EXAMPLE, "--credits", "100")
    assert done.status == 0, done.err
    assert "submitted" in done.out
    listed = await secure.run("job", "list")
    assert (listed.status, "pending" in listed.out) == (0, True)


async def test_the_address_book_names_the_authority(secure: Dps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    book = AddressBook.load(secure.book).model_copy(update={"authorities": proxy.authority.read_text()})
    book.save(secure.book)
    done = await secure.run("submit", EXAMPLE, "--credits", "100")
    assert done.status == 0, done.err
    assert "submitted" in done.out


async def test_the_contracts_are_checked_with_the_authority_alone(
    secure: Dps, proxy: Proxy, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time it is an option, then it is in the book."""
    monkeypatch.delenv("SSL_CERT_FILE")
    given = await secure.run("operator", "deploy", "--authorities", str(proxy.authority))
    assert (given.status, "nothing was sent" in given.out) == (0, True), given.err
    assert AddressBook.load(secure.book).authorities == proxy.authority.read_text()
    again = await secure.run("operator", "deploy")
    assert (again.status, "nothing was sent" in again.out) == (0, True), again.err


async def test_a_certificate_of_nobody_is_refused(secure: Dps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    done = await secure.run("credit", "get")
    assert (done.status, "Traceback" in done.err) == (2, False)


async def test_answers_carry_one_policy_and_the_proxy_adds_hsts(proxy: Proxy) -> None:
    trusted = ssl.create_default_context(cafile=str(proxy.authority))
    async with httpx.AsyncClient(verify=trusted) as client:
        answer = await client.get(f"{proxy.url}/v1/health")
        too_large = await client.post(f"{proxy.url}/v1/definitions", content=b"x" * 2_000_000)
    assert answer.status_code == httpx.codes.OK
    assert answer.headers.get_list("strict-transport-security") == ["max-age=31536000"]
    assert too_large.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_caddy_accepts_its_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [program("usr/bin/caddy"), "validate", "--adapter", "caddyfile", "--config", str(PROXY / "Caddyfile")],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin"}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Valid configuration" in done.stdout + done.stderr
