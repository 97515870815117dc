"""The edge of the services: who can open their sockets, and whether nginx runs the file that this release makes."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx

from deepgrid.chain.book import AddressBook
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.secure_url import trusting
from deepgrid.services.app import ServicesSettings
from deepgrid.services.edge import deployed_settings, digest_in, proxy_file

ANSWER_WITHIN_S = 10.0
MAKE_ANEW = "Make the file with `dps services proxy`, and reload nginx."


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
    """Whether what answers at the URL of the address book is nginx with the file that this release makes."""
    if file is None:
        words = "Which proxy stands in front of the services was not checked."
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
        trusted = trusting(book.authorities) if book.authorities else httpx.create_ssl_context()
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
