"""The batch script of a job for the nodes of this cluster, or the reason why they cannot run it."""

from __future__ import annotations

import asyncio

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.provider.session import ProviderSession
from deepgrid.sbatch import render
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.sbatch.render import needs_grid_files
from deepgrid.services.client import FilesClient
from deepgrid.services.files.private_keys import FileKeys
from deepgrid.services.script_check import check_grammar
from deepgrid.services.signing.signatures import Domain
from deepgrid.workflow import Definition
from deepgrid.workflow.needs import needs_of


async def grid_files_of(model: Definition, session: ProviderSession, job: Job) -> GridFiles:
    """Return the addresses of files that the grid keeps for the script, and the keys of private ones.

    Raises NotFound if the grid has them no more, ServiceError while the services do not answer, InputError if they are
    not encrypted for this cluster.
    """
    if not needs_grid_files(model):
        return GridFiles()
    secrets, book = dict[str, str](), session.chain.book
    if private := model.private_files:
        domain = Domain(book.chain_id, book.meta_scheduler)
        keys = FileKeys.of_cluster(session.sender.wallet, domain, private, job.customer)
        secrets = {
            "input_key": keys.input_key().hex(),
            "output_key": keys.output_key(job).hex(),
            "own_key": private.own,
        }
    files = FilesClient(session.services)
    found = await files.transfers(job.id)
    source, target = (files.url(address) if address else "" for address in (found.input, found.output))
    return GridFiles(source, target, book.authorities or "", **secrets)


async def script_of(model: Definition, session: ProviderSession, grid_files: GridFiles) -> str:
    """Return the batch script. Raises InputError when this cluster cannot run the job."""
    settings, features = session.settings, session.features
    if lacking := features.why_unfit(needs_of(model), settings.labels):
        raise InputError(lacking)
    folders = await session.registries.folders(model, features.containers)
    script = render(model, settings.storage, features.containers, folders, grid_files)
    await asyncio.to_thread(check_grammar, script)
    return script
