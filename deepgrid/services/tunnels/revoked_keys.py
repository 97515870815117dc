"""Ends the tunnels of session keys that another process of the services has revoked."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.services.storage.database import Database, RevokedSession
from deepgrid.services.tunnels.switchboard import Switchboard

logger = logging.getLogger(__name__)


async def end_revoked_for_ever(switchboard: Switchboard, database: Database) -> None:
    """Look at short intervals. A failed look is repeated by the next one."""
    while True:
        await asyncio.sleep(switchboard.limits.revoked_every_s)
        if keys := switchboard.session_keys:
            wanted = select(RevokedSession.key_hash).where(RevokedSession.key_hash.in_(keys))
            try:
                async with database.read() as session:
                    revoked = (await session.scalars(wanted)).all()
            except SQLAlchemyError as error:
                logger.warning("cannot look for revoked session keys, trying again: %s", type(error).__name__)
                continue
            await switchboard.end_of(revoked)
