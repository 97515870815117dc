"""Checks of the public side: the sockets, nginx with the file of this release, the URLs of the address book, and
metrics.
"""

from __future__ import annotations

import asyncio
import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from cryptography.x509 import load_der_x509_certificate

from deepgrid.chain.book import AddressBook
from deepgrid.chain.transactions.eth_accounts import Account
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.safe_http import is_loopback, tls_of
from deepgrid.services.app import ServicesSettings
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.proxy_file import deployed_settings, digest_in, proxy_file

ANSWER_WITHIN_S = 10.0
MAKE_ANEW = "Make the file with `dps services proxy`, and reload nginx."
HTTPS_PORT = 443
SOON_DAYS = 21


def examine_sockets(settings: ServicesSettings) -> Finding:
    """Find out who can open the sockets of the services."""
    folder = settings.sockets
    if folder is None:
        words = "The services listen at a port of this machine, where nothing limits requests per address."
        return Finding("listening", Level.WARNING, words, "Give --sockets, and put nginx in front.")
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        words = f"The folder of the sockets {folder} cannot be read: {error.strerror}."
        return Finding("listening", Level.BAD, words, "Start the services, or correct --sockets.")
    if mode & stat.S_IRWXO:
        words = f"All accounts of this machine reach the services past the proxy, through {folder}."
        return Finding("listening", Level.BAD, words, f"Run `chmod o= {folder}`.")
    who = f"the group {folder.group()}" if mode & stat.S_IXGRP else "this account"
    return Finding("listening", Level.GOOD, f"Only {who} can open the sockets in {folder}.")


async def examine_proxy(book: AddressBook, sockets: Path | None, file: Path | None) -> Finding:
    """Return whether nginx with this release's file answers at the URL of the address book."""
    if file is None:
        words = "The proxy in front of the services was not checked."
        return Finding("proxy", Level.WARNING, words, "Give its file as --proxy-config.")
    try:
        text = file.read_text()
        settings = deployed_settings(text)
    except OSError as error:
        return Finding("proxy", Level.BAD, f"The proxy's file {file} cannot be read: {error.strerror}.", MAKE_ANEW)
    except GridError as error:
        return Finding.of("proxy", error)
    if text != proxy_file(settings):
        words = f"The proxy's file {file} is not what this release makes: it was changed, or is of another release."
        return Finding("proxy", Level.BAD, words, MAKE_ANEW)
    if sockets is not None and sockets not in settings.sockets:
        return Finding("proxy", Level.BAD, f"The proxy's file {file} does not lead to {sockets}.", MAKE_ANEW)
    return await _running(book, file, digest_in(text))


async def _running(book: AddressBook, file: Path, digest: str) -> Finding:
    url = f"{book.definitions_url}/v1/proxy"
    try:
        trusted = tls_of(url, book.authorities)
        async with httpx.AsyncClient(timeout=ANSWER_WITHIN_S, trust_env=False, verify=trusted) as client:
            told = (await client.get(url)).json()
    except (httpx.HTTPError, ValueError) as error:
        return Finding(
            "proxy", Level.BAD, f"No proxy of this grid answers at {url} ({type(error).__name__}).", MAKE_ANEW
        )
    if told != {"file": digest}:
        words = f"The proxy at {book.definitions_url} runs another file than {file}."
        return Finding("proxy", Level.BAD, words, "Reload nginx, such as by `systemctl reload deepgrid-proxy`.")
    return Finding("proxy", Level.GOOD, f"The proxy at {book.definitions_url} runs {file}, as this release makes it.")


async def examine_front(book: AddressBook) -> list[Finding]:
    urls = list(dict.fromkeys((book.definitions_url, book.logs_url)))  # often the same
    found = await asyncio.gather(*(_url(book, url) for url in urls))
    return [finding for findings in found for finding in findings]


async def examine_metrics(port: int) -> list[Finding]:
    if not port:
        words, step = "The services serve no metrics.", "Set DEEPGRID_SERVICES_METRICS_PORT to see them in Prometheus."
        return [Finding("metrics", Level.WARNING, words, step)]
    url = f"http://127.0.0.1:{port}/metrics"
    step = "Check whether the services run, and whether another program has the port."
    try:
        async with httpx.AsyncClient(timeout=ANSWER_WITHIN_S, trust_env=False) as client:
            page = (await client.get(url)).text
    except httpx.HTTPError as error:
        return [Finding("metrics", Level.WARNING, f"{url} does not answer ({type(error).__name__}).", step)]
    if "deepgrid_services_" not in page:
        return [Finding("metrics", Level.WARNING, f"{url} is not the page of the services.", step)]
    return [Finding("metrics", Level.GOOD, f"{url} has the metrics of the services.")]


async def _url(book: AddressBook, url: str) -> list[Finding]:
    """Return whether the services of this grid answer there, as a client sees them. The check needs no rights."""
    try:
        async with ServicesClient.of(book, Account.create(), url) as services:
            await services.health()
    except GridError as error:
        step = error.next_step or "Check whether dps services serve runs, and whether the proxy forwards to it."
        return [Finding("url", Level.BAD, error.message, step)]
    where = urlsplit(url)
    good = Finding("url", Level.GOOD, f"The services of this grid answer at {url}.")
    if where.scheme == "https":
        return [good, await _public_certificate(book, url)]
    if is_loopback(where.hostname or ""):
        return [good]
    words, step = f"{url} carries secrets in clear text.", "Serve it over https, and correct the address book."
    return [good, Finding("tls", Level.WARNING, words, step)]


async def _public_certificate(book: AddressBook, url: str) -> Finding:
    """Return when the clients' certificate ends. They have just accepted it."""
    host, port = urlsplit(url).hostname, urlsplit(url).port or HTTPS_PORT
    what = f"The certificate of {host}:{port}"
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            _, writer = await asyncio.open_connection(host, port, ssl=tls_of(url, book.authorities))
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


def judge_end(ends: datetime, what: str) -> Finding:
    """Return the finding on a certificate that is valid until `ends`."""
    days, day = (ends - datetime.now(UTC)).days, f"{ends:%Y-%m-%d}"
    if days < 0:
        return Finding("tls", Level.BAD, f"{what} ended on {day}.", "Renew it, and restart what serves it.")
    if days < SOON_DAYS:
        return Finding("tls", Level.WARNING, f"{what} ends on {day}.", "Renew it, and restart what serves it.")
    return Finding("tls", Level.GOOD, f"{what} is valid until {day}.")
