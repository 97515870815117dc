"""Fetches modules for clients that do not sign, from the hosts that the operator lists."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from deepgrid.compat.anonymous.listed_hosts import ListedHosts
from deepgrid.compat.compat_context import CompatContext
from deepgrid.compat.settings import CompatSettings
from deepgrid.modules import ModuleLimits, resolve
from deepgrid.workflow import LoadedWorkflow, canonical, from_canonical

LIMITS = ModuleLimits(
    uses=20, depth=4, within_s=20.0, fetch_within_s=10.0, repository_bytes=16 * 1024**2,
    git_memory_bytes=1024**3, template_within_s=5.0, template_cpu_s=2, template_memory_bytes=256 * 1024**2,
)  # fmt: skip
FIELDS = (b'"use":', b'"if":')  # in JSON, no text holds these: its quotes are escaped


async def resolve_uses(context: CompatContext, source: str, content: bytes) -> bytes:
    """Check the conditions of a job, and replace each `use` by the steps of its module.

    A job that has neither is not parsed.

    Args:
        context: The parts that existing clients share.
        source: Source address of the request.
        content: The job in canonical form.

    Returns:
        The same, without any `use`.

    Raises:
        InputError: One line per fault, each with the path of its field. It is transient if the only faults are
            repositories that did not answer.
        Refusal: 429 while too many jobs of this address wait for their modules.
    """
    if not any(name in content for name in FIELDS):
        return content
    async with context.fetches.turn(source):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(context.fetch_threads, _resolved, content, context.settings)


def _resolved(content: bytes, settings: CompatSettings) -> bytes:
    """The job with its modules. Nothing that was fetched is kept."""
    job = from_canonical(content)
    with tempfile.TemporaryDirectory(prefix="deepgrid-modules-") as folder:
        loaded = LoadedWorkflow(job, source_text="")
        return canonical(resolve(loaded, cache=Path(folder), limits=LIMITS, reach=ListedHosts(settings)).model)
