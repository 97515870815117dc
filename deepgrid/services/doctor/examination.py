"""All findings on the services: files, programs, database, chain, and what their clients reach."""

from __future__ import annotations

import asyncio
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.chain_findings import judge_clock, judge_head
from deepgrid.chain.client import Chain
from deepgrid.errors import GridError
from deepgrid.findings import Finding
from deepgrid.services.app import ServicesSettings
from deepgrid.services.doctor.public_checks import examine_front, examine_metrics, examine_proxy, examine_sockets
from deepgrid.services.doctor.store_checks import examine_machine, examine_store


async def examine_services(settings: ServicesSettings, proxy_config: Path | None = None) -> list[Finding]:
    """All findings, each on one subject. `proxy_config` is nginx's file. It makes no file and no table."""
    here = [*examine_machine(settings), examine_sockets(settings), *await examine_store(settings)]
    try:
        book = AddressBook.load(settings.book)
    except GridError as error:
        return [*here, Finding.of("book", error), *await examine_metrics(settings.metrics_port)]
    parts = (_chain(book), examine_front(book), examine_metrics(settings.metrics_port))
    proxy = await examine_proxy(book, settings.sockets, proxy_config)
    return [*here, proxy, *(finding for findings in await asyncio.gather(*parts) for finding in findings)]


async def _chain(book: AddressBook) -> list[Finding]:
    try:
        async with await Chain.connect(book) as chain:
            head = await chain.head()
    except GridError as error:
        return [Finding.of("chain", error)]
    return [judge_head(book, head), judge_clock(head.timestamp)]
