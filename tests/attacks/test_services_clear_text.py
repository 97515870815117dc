"""An attacker on the network path reads or changes plain HTTP requests to the services."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError, GridError, ServiceError
from deepgrid.secure_url import PLAIN_HTTP_VARIABLE
from deepgrid.services.admission import Limits
from deepgrid.services.app import ServicesSettings
from deepgrid.services.serve import serve
from tests.attacks.http_support import connect
from tests.services.support import ACCOUNTS, Start, a_job, client_of, starting

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
CLEAR = [
    "http://grid.example.org", "http://10.0.0.5:3000", "http://127.0.0.1.example.org", "http://localhost.example.org",
    "http://2130706433", "http://127.1", "http://[::ffff:10.0.0.5]", "HTTP://grid.example.org",
]  # fmt: skip
STRANGE = ["http://127.0.0.1@grid.example.org", "ftp://127.0.0.1", "//127.0.0.1", "http://", "http://[::1"]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with starting(tmp_path) as start_one:
        yield start_one


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-keyout", paths[1], "-out", paths[0], "-days", "2", "-subj", "/CN=grid", "-addext"]
    subprocess.run([*argv, "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5"])
@pytest.mark.attack(
    "services that listen on the network without TLS", attacker="an attacker on the network path", gain="nothing",
    defence="they start only with a certificate, a trusted proxy or --allow-plain-http",
)  # fmt: skip
async def test_services_do_not_listen_in_clear_text(tmp_path: Path, host: str) -> None:
    book = tmp_path / "none.json"
    settings = ServicesSettings(f"sqlite:///{tmp_path}/db", tmp_path / "secret", host=host, book=book)
    with pytest.raises(ConfigurationError, match="clear text"):
        await serve(settings)
    with pytest.raises(ConfigurationError, match="no address book"):
        await serve(replace(settings, allow_plain_http=True))


@pytest.mark.attack(
    "another certificate than the services'", attacker="an attacker on the network path", gain="nothing",
    defence="certificates are verified, on this machine too",
)  # fmt: skip
async def test_tls_is_verified(start: Start, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    grid = await start(tls_cert=certificate[0], tls_key=certificate[1])
    assert grid.url.startswith("https://")
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        with pytest.raises(ServiceError, match="do not answer"):
            await client.upload(a_job())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        definition_hash = await client.upload(a_job())
        assert await client.releases(definition_hash) == []


@pytest.mark.attack(
    "TLS handshakes that never finish", attacker="a stranger with HTTP", gain="a connection for 10 s",
    defence="handshakes have a deadline and count as connections",
)  # fmt: skip
async def test_unfinished_handshakes_stop_no_other_client(
    start: Start, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    limits = Limits(connections=60, connections_per_address=40, head_within_s=2)
    grid = await start(tls_cert=certificate[0], tls_key=certificate[1], limits=limits)
    held = [await connect(grid.url, f"127.0.6.{1 + n % 4}") for n in range(120)]
    async with client_of(grid.url, ACCOUNTS["customer"]) as client:
        await client.health()
    for raw in held:
        assert await raw.rest() == b""
        raw.writer.close()


@pytest.mark.attack(
    "a TLS key that others may read, or that does not match the certificate",
    attacker="an account on the services' machine",
    gain="nothing", defence="the services do not start with it",
)  # fmt: skip
async def test_a_key_that_others_read_is_refused(start: Start, certificate: tuple[Path, Path]) -> None:
    certificate[1].chmod(0o644)
    with pytest.raises(ConfigurationError, match="Others may read"):
        await start(tls_cert=certificate[0], tls_key=certificate[1])
    certificate[1].chmod(0o600)
    for cert, key in ((certificate[0], None), (None, certificate[1]), (certificate[0], certificate[0])):
        with pytest.raises(ConfigurationError, match="TLS"):
            await start(tls_cert=cert, tls_key=key)
