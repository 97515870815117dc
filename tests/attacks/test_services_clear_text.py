"""An attacker on the network path reads or changes plain HTTP requests to the services."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError, GridError, ServiceError
from deepgrid.safe_http import PLAIN_HTTP_VARIABLE
from deepgrid.services.app import ServicesSettings
from deepgrid.services.edge.listeners import open_listeners
from deepgrid.services.edge.proxy_file import EdgeLimits, proxy_settings
from tests.attacks.http_support import connect
from tests.services.edge_support import short_folder
from tests.services.support import ACCOUNTS, Start, a_job, client_of, starting

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
CLEAR = [
    "http://grid.example.org", "http://10.0.0.5:3000", "http://127.0.0.1.example.org", "http://localhost.example.org",
    "http://2130706433", "http://127.1", "http://[::ffff:10.0.0.5]", "HTTP://grid.example.org",
]  # fmt: skip
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
STRANGE = ["http://127.0.0.1@grid.example.org", "ftp://127.0.0.1", "//127.0.0.1", "http://", "http://[::1"]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with starting(tmp_path) as start_one:
        yield start_one


@pytest.mark.parametrize("url", CLEAR + STRANGE)
@pytest.mark.parametrize("field", ["definitions_url", "logs_url"])
@pytest.mark.attack(
    "an address book with an http:// URL of the services", attacker="an attacker on the network path", gain="nothing",
    defence="https is required beyond this machine, unless DEEPGRID_ALLOW_PLAIN_HTTP=1",
)  # fmt: skip
def test_a_book_with_clear_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, url: str
) -> None:
    fields = {
        "chain_id": 31337, "rpc_url": "http://127.0.0.1:8545", "meta_scheduler": ADDRESS, "credit": ADDRESS,
        "provider_manager": ADDRESS, "definitions_url": "https://grid.example.org", "logs_url": "http://127.0.0.1:9",
    }  # fmt: skip
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(fields))
    assert AddressBook.load(path).logs_url == "http://127.0.0.1:9"
    path.write_text(json.dumps(fields | {field: url}))
    with pytest.raises(ConfigurationError, match=field):
        AddressBook.load(path)
    monkeypatch.setenv(PLAIN_HTTP_VARIABLE, "1")
    if url in CLEAR[:3]:
        assert AddressBook.load(path)
    elif url in STRANGE:
        with pytest.raises(ConfigurationError, match=field):
            AddressBook.load(path)


@pytest.mark.parametrize("url", CLEAR + STRANGE)
@pytest.mark.attack(
    "an http:// URL in a block or a setting", attacker="an attacker on the network path", gain="nothing",
    defence="the client itself refuses it",
)  # fmt: skip
def test_a_client_sends_nothing_in_clear_text(url: str) -> None:
    with pytest.raises(ConfigurationError, match="services' URL"):
        client_of(url, ACCOUNTS["customer"])


@pytest.mark.attack(
    "the services answer with a redirection to http", attacker="compromised services", gain="nothing",
    defence="clients follow no redirection",
)  # fmt: skip
async def test_no_redirection_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": "http://grid.example.org/"}, stream=httpx.ByteStream(b""))

    async with client_of("https://grid.example.org", ACCOUNTS["customer"]) as client:
        client._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        with pytest.raises(GridError):
            await client.upload(a_job())
    assert all(url.startswith("https://") for url in asked)


@pytest.mark.parametrize("address", ["80", "[::]:80", "0.0.0.0:3000", "10.0.0.5:3000"])
@pytest.mark.parametrize("option", ["listen", "clear_grpc"])
@pytest.mark.attack(
    "a proxy that listens on the network without TLS", attacker="an attacker on the network path", gain="nothing",
    defence="its file is made only with a certificate, or for addresses of this machine",
)  # fmt: skip
def test_no_proxy_listens_in_clear_text(address: str, option: str) -> None:
    chosen = {"listen": ("127.0.0.1:443",)} | {option: address if option == "clear_grpc" else (address,)}
    with pytest.raises(ConfigurationError, match="clear text"):
        proxy_settings(sockets=(Path("/run/deepgrid-services"),), **chosen)


@pytest.mark.attack(
    "another certificate than the services'", attacker="an attacker on the network path", gain="nothing",
    defence="certificates are verified, on this machine too",
)  # fmt: skip
async def test_tls_is_verified(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = await start(edge=EdgeLimits(), tls=True)
    assert grid.url.startswith("https://")
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        with pytest.raises(ServiceError, match="do not answer"):
            await client.upload(a_job())
    monkeypatch.setenv("SSL_CERT_FILE", str(grid.authority))
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        definition_hash = await client.upload(a_job())
        assert await client.releases(definition_hash) == []


@pytest.mark.attack(
    "TLS handshakes that never finish", attacker="a stranger with HTTP", gain="connections of the proxy for 10 s",
    defence="handshakes have a deadline, and the services do not notice",
)  # fmt: skip
async def test_unfinished_handshakes_stop_no_other_client(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = await start(edge=EdgeLimits(head_within_s=2), tls=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(grid.authority))
    at_address = grid.url.replace("localhost", "127.0.0.1")
    held = [await connect(at_address, f"127.0.6.{1 + n % 4}") for n in range(120)]
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        await client.health()
    for raw in held:
        assert await raw.rest() == b""
        raw.writer.close()


@pytest.mark.attack(
    "another account of the machine reaches the services past the proxy",
    attacker="an account on the services' machine", gain="nothing",
    defence="only the proxy's group can open the folder of their sockets",
)  # fmt: skip
@pytest.mark.parametrize("group", [None, "daemon"])
def test_only_the_proxy_opens_the_sockets(tmp_path: Path, group: str | None) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to another group")
    with ExitStack() as stack:
        folder = stack.enter_context(short_folder())
        settings = ServicesSettings("", folder / "secret", sockets=folder / "s", socket_group=group)
        listeners = stack.enter_context(open_listeners(settings))
        folder.chmod(0o755)
        assert listeners.are_behind_proxy
        assert (folder / "s").stat().st_mode & 0o777 == (0o710 if group else 0o700)
        assert (folder / "s/http.sock").stat().st_mode & 0o777 == (0o660 if group else 0o600)
        nobody = ["setpriv", "--reuid", "nobody", "--clear-groups", "--regid"]
        connects = [sys.executable, "-c", CONNECT, str(folder / "s/http.sock")]
        assert subprocess.run([*nobody, "nogroup", *connects], check=False, capture_output=True).returncode != 0
        if group:
            subprocess.run([*nobody, group, *connects], check=True)
        with pytest.raises(ConfigurationError, match="Another process"), open_listeners(settings):
            pass
