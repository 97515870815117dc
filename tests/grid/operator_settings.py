"""Settings of a running grid's operator, changed for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deployments.onemachine.grid import LocalGrid
from tests.grid.runs import api

AHEAD_S = 365 * 24 * 3600.0


@asynccontextmanager
async def assigned_at_once(grid: LocalGrid) -> AsyncIterator[None]:
    """Let the operator assign jobs with any estimated start, so that they wait in Slurm."""
    before = await set_operator(grid, assign_ahead_s=AHEAD_S)
    try:
        yield
    finally:
        await set_operator(grid, assign_ahead_s=before["assign_ahead_s"])


async def set_operator(grid: LocalGrid, **settings: float) -> dict[str, float]:
    """Change settings in the operator's block and restart the operator. Returns the previous settings."""
    async with api(grid) as client:
        found = await client.get("block_types/slug/deepgrid-operator/block_documents/name/grid")
        block = found.raise_for_status().json()
        blocks = {  # the update drops references that it does not name
            name: {"$ref": {"block_document_id": reference["block_document"]["id"]}}
            for name, reference in block["block_document_references"].items()
        }
        changed = {"data": {**blocks, **settings}, "merge_existing_data": True}
        (await client.patch(f"block_documents/{block['id']}", json=changed)).raise_for_status()
    await asyncio.to_thread(grid.table.stop, "operator")
    await asyncio.to_thread(grid.start, "operator")
    return {name: block["data"][name] for name in settings}
