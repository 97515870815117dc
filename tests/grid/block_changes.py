"""A field of a block with another value for a while, as a person writes it in Prefect's UI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deployments.onemachine.grid import LocalGrid
from tests.grid.runs import Json, api


@asynccontextmanager
async def changed_block(grid: LocalGrid, block: str, name: str, value: object) -> AsyncIterator[None]:
    """Write a value into a field of the block `TYPE/NAME`, and the old value afterwards. Prefect checks neither."""
    found = await _read(grid, block)
    # Without its references a block would lose the blocks in it.
    references = {
        field: {"$ref": {"block_document_id": one["block_document"]["id"]}}
        for field, one in found["block_document_references"].items()
    }
    data = found["data"] | references
    await _write(grid, found["id"], data | {name: value})
    try:
        yield
    finally:
        await _write(grid, found["id"], data)


async def value_of(grid: LocalGrid, block: str, name: str) -> object:
    """Return the value of a field of the block `TYPE/NAME`."""
    return (await _read(grid, block))["data"][name]


async def _read(grid: LocalGrid, block: str) -> Json:
    kind, _, name = block.partition("/")
    async with api(grid) as client:
        path = f"block_types/slug/{kind}/block_documents/name/{name}"
        return dict((await client.get(path, params={"include_secrets": True})).raise_for_status().json())


async def _write(grid: LocalGrid, block_id: str, data: Json) -> None:
    async with api(grid) as client:
        change = {"data": data, "merge_existing_data": False}
        (await client.patch(f"block_documents/{block_id}", json=change)).raise_for_status()
