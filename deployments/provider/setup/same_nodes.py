"""Detects that another provider seems to sell the same nodes. Jobs of both would share resources that each has paid
for.

There are three sources: the provider blocks of this Prefect server, other providers' jobs in the grid's folder on the
login node, and offers on chain with the same hardware. None of them is complete, so the findings are only remarks.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from prefect.client.orchestration import get_client

from blocks import Provider
from blocks.block_loading import load_block
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deployments.provider.setup.answer_checks import login_settings, open_login, path_of
from deployments.provider.setup.provider_questions import Answers

MOST_BLOCKS = 200


async def other_sellers(answers: Answers) -> list[str]:
    """Return a sentence for each provider that seems to sell the nodes of this partition. Changes nothing."""
    own = login_settings(answers)
    found = []
    with suppress(GridError):  # all answers were already checked; these are only remarks
        found += await _by_blocks(answers["cluster"], own)
        found += await _by_chain(path_of(answers["grid.address_book"]), path_of(answers["grid.key_file"]), own)
    return found


async def _by_blocks(cluster: str, own: LoginSettings) -> list[str]:
    """Compare with the login nodes and partitions of other provider blocks on this Prefect server."""
    async with get_client() as client:
        slug = Provider.get_block_type_slug()
        documents = await client.read_block_documents_by_type(slug, limit=MOST_BLOCKS, include_secrets=False)
    found = []
    for name in sorted(one.name for one in documents if one.name and one.name != cluster):
        other = (await load_block(Provider, name)).login
        if (other.host, other.port, other.partition) == (own.host, own.port, own.partition):
            found.append(f"The provider block {name} sells the partition {own.partition} of {own.host}, too.")
    return found


async def _by_chain(book_file: Path, key_file: Path, own: LoginSettings) -> list[str]:
    """Compare with the providers of jobs in the queue, and with offers of the same hardware."""
    book, address = AddressBook.load(book_file), Wallet.load(key_file).address
    async with open_login(own) as login, await Chain.connect(book) as chain:
        cluster = Cluster(login, own)
        hardware = await cluster.hardware(usable_only=False)
        held = await cluster.queue(JobKey(book.chain_id, book.meta_scheduler, 0, 0))
        last = await chain.job_count()
        jobs = await chain.jobs(sorted({key.job_id for key in held.claims if 0 < key.job_id <= last}))
        others = {one.address: one for one in await chain.providers() if one.address != address and not one.banned}
    running = {job.provider for job in jobs if job.provider in others}
    alike = {one.address for one in others.values() if one.hardware == hardware} - running
    return [
        *(f"The provider {others[one].name} has jobs of this grid on {own.host}." for one in sorted(running)),
        *(f"The provider {others[one].name} offers exactly the same hardware on chain." for one in sorted(alike)),
    ]
