"""News of changed logs across all processes on one database.

PostgreSQL notifies the processes (LISTEN and NOTIFY). A SQLite file has one process, which knows its own changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.services.storage.database import Database
from deepgrid.services.storage.postgres_connection import DRIVER_ERRORS

CHANNEL = "grid_log"
LISTEN_AGAIN_S = 2.0
PROBE_EVERY_S = 30.0  # a connection that was cut without a word shows in an answer only
PROBE_WAIT_S = 10.0

logger = logging.getLogger(__name__)


class LogNews:
    """Hears which logs changed. `complete` says whether no news can be missed now; if not, readers must look."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.complete = not database.is_shared

    async def tell(self, session: AsyncSession, job_id: int) -> None:
        """Notify all processes of a changed log when the transaction is committed."""
        if self._database.is_shared:
            await session.execute(text("SELECT pg_notify(:channel, :job)"), {"channel": CHANNEL, "job": str(job_id)})

    async def hear(self, changed: Callable[[int], None], maybe_all: Callable[[], None]) -> None:
        """Call `changed` for each changed log, and `maybe_all` after a time without news. Until cancelled."""
        while self._database.is_shared:
            try:
                await self._listen(changed, maybe_all)
            except (SQLAlchemyError, *DRIVER_ERRORS) as error:
                kind = type(error).__name__
                logger.warning("listening for changed logs failed, trying again in %.0f s: %s", LISTEN_AGAIN_S, kind)
            finally:
                self.complete = False
            await asyncio.sleep(LISTEN_AGAIN_S)

    async def _listen(self, changed: Callable[[int], None], maybe_all: Callable[[], None]) -> None:
        lost = asyncio.Event()

        def heard(_connection: object, _process: int, _channel: str, job: object) -> None:
            changed(int(str(job)))

        async with self._database.driver_connection() as connection:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, heard)
            self.complete = True
            maybe_all()
            while not lost.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), PROBE_EVERY_S)
                    return
                await connection.execute("SELECT 1", timeout=PROBE_WAIT_S)
