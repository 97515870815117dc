"""Inserts of identical rows by several processes at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.services.storage.database import Table


async def add_missing(session: AsyncSession, table: type[Table], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys do not exist yet. `merge` would fail if another process inserted one meanwhile."""
    if not rows:
        return
    if session.get_bind().dialect.name == "sqlite":
        await session.execute(sqlite.insert(table).on_conflict_do_nothing(), rows)
    else:
        await session.execute(postgresql.insert(table).on_conflict_do_nothing(), rows)
