"""The batch script of a job for the nodes of this cluster, or the reason why they cannot run it."""

from __future__ import annotations

import asyncio

from deepgrid.errors import InputError
from deepgrid.provider.session import ProviderSession
from deepgrid.sbatch import render
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.sbatch.render import needs_grid_files
from deepgrid.services.client import FilesClient
from deepgrid.services.script_check import check_grammar
from deepgrid.workflow import Definition
from deepgrid.workflow.needs import needs_of


async def grid_files_of(model: Definition, session: ProviderSession, job_id: int) -> GridFiles:
    """Return the addresses of files that the grid keeps for the script.

    Raises NotFound if the grid has them no more, ServiceError while the services do not answer.
    """
    if not needs_grid_files(model):
        return GridFiles()
    files = FilesClient(session.services)
    found = await files.transfers(job_id)
    source, target = (files.url(address) if address else "" for address in (found.input, found.output))
    return GridFiles(source, target, session.chain.book.authorities or "")


async def script_of(model: Definition, session: ProviderSession, grid_files: GridFiles) -> str:
    """Return the batch script. Raises InputError when this cluster cannot run the job."""
    settings, features = session.settings, session.features
    if lacking := features.why_unfit(needs_of(model), settings.labels):
        raise InputError(lacking)
    folders = await session.registries.folders(model, features.containers)
    script = render(model, settings.storage, features.containers, folders, grid_files)
    await asyncio.to_thread(check_grammar, script)
    return script
