"""What clients reach: the URLs of the address book with their TLS, and the page of metrics."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

import httpx
from cryptography.x509 import load_der_x509_certificate
from eth_account import Account

from deepgrid.chain.book import AddressBook
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.secure_url import is_loopback, trusting
from deepgrid.services.client import ServicesClient
from deepgrid.services.doctor.machine_checks import judge_end

ANSWER_WITHIN_S = 10.0
HTTPS_PORT = 443


async def examine_front(book: AddressBook) -> list[Finding]:
    urls = list(dict.fromkeys((book.definitions_url, book.logs_url)))  # often the same
    found = await asyncio.gather(*(_url(book, url) for url in urls))
    return [finding for findings in found for finding in findings]


async def examine_metrics(port: int) -> list[Finding]:
    if not port:
        words, step = "The services serve no metrics.", "Set DEEPGRID_SERVICES_METRICS_PORT to see them in Prometheus."
        return [Finding("metrics", Level.WARNING, words, step)]
    url = f"http://127.0.0.1:{port}/metrics"
    step = "Look whether the services run, and whether another program has the port."
    try:
        async with httpx.AsyncClient(timeout=ANSWER_WITHIN_S, trust_env=False) as client:
            page = (await client.get(url)).text
    except httpx.HTTPError as error:
        return [Finding("metrics", Level.WARNING, f"{url} does not answer ({type(error).__name__}).", step)]
    if "deepgrid_services_" not in page:
        return [Finding("metrics", Level.WARNING, f"{url} is not the page of the services.", step)]
    return [Finding("metrics", Level.GOOD, f"{url} has the metrics of the services.")]


async def _url(book: AddressBook, url: str) -> list[Finding]:
    """Whether the services of this grid answer there, as a client sees them. The check needs no rights."""
    try:
        async with ServicesClient.of(book, Account.create(), url) as services:
            await services.health()
    except GridError as error:
        step = error.next_step or "Look whether dps services serve runs, and whether the proxy leads to it."
        return [Finding("url", Level.BAD, error.message, step)]
    where = urlsplit(url)
    good = Finding("url", Level.GOOD, f"The services of this grid answer at {url}.")
    if where.scheme == "https":
        trusted = trusting(book.authorities) if book.authorities else httpx.create_ssl_context()
        return [good, await _public_certificate(where.hostname or "", where.port or HTTPS_PORT, trusted)]
    if is_loopback(where.hostname or ""):
        return [good]
    words, step = f"{url} carries secrets in clear text.", "Serve it over https, and correct the address book."
    return [good, Finding("tls", Level.WARNING, words, step)]


async def _public_certificate(host: str, port: int, trusted: ssl.SSLContext) -> Finding:
    """When the certificate that clients see ends. They have accepted it just now."""
    what = f"The certificate of {host}:{port}"
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            _, writer = await asyncio.open_connection(host, port, ssl=trusted)
    except (OSError, TimeoutError) as error:
        return Finding("tls", Level.WARNING, f"{what} could not be read ({type(error).__name__}).", "Try again.")
    try:
        connection = writer.get_extra_info("ssl_object")
        assert isinstance(connection, ssl.SSLObject)
        shown = connection.getpeercert(binary_form=True)
        assert shown is not None
        return judge_end(load_der_x509_certificate(shown).not_valid_after_utc, what)
    finally:
        writer.close()
