"""The batch script of a job for the nodes of this cluster, or the reason why they cannot run it."""

from __future__ import annotations

import asyncio

from deepgrid.errors import InputError
from deepgrid.provider.session import ProviderSession
from deepgrid.sbatch import render
from deepgrid.services.script_check import check_grammar
from deepgrid.workflow import Definition
from deepgrid.workflow.needs import needs_of


async def script_of(model: Definition, session: ProviderSession) -> str:
    """Return the batch script. Raises InputError when this cluster cannot run the job."""
    settings, features = session.settings, session.features
    if lacking := features.why_unfit(needs_of(model), settings.labels):
        raise InputError(lacking)
    folders = await session.registries.folders(model, features.containers)
    script = render(model, settings.storage, features.containers, folders)
    await asyncio.to_thread(check_grammar, script)
    return script
