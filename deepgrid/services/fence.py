"""Refuses what was signed before the database was restored from a backup.

The backup lacks the nonces and revocations since it was made. So requests of that time could be sent again, and revoked
session keys would work again. Nothing accepted before the restore is accepted after it:

* A request was accepted at most WINDOW_S before its own time. So requests up to WINDOW_S after the restore are refused.
* A session does not say when it was opened, but an accepted one ended at most MAX_LIFETIME_S and CLOCK_SLACK_S later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sqlalchemy import func, select

from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import WINDOW_S, Verified
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S
from deepgrid.services.storage.database import Database, Restore


@dataclass(frozen=True, slots=True)
class Fence:
    """The time of the last restore in unix seconds, None without one."""

    restored_at: int | None = None

    @classmethod
    async def read(cls, database: Database) -> Self:
        """The fence of this database. It does not change while a process serves the database."""
        async with database.read() as session:
            return cls(await session.scalar(select(func.max(Restore.at))))

    def require_later(self, verified: Verified) -> None:
        """Refuse a request with 503, and a session with 401, that may have been accepted before the restore.

        A request signed later is taken. So 503 makes clients wait, where 401 would make them give up.
        """
        if self.restored_at is None:
            return
        wait_s = self.restored_at + WINDOW_S + 1 - verified.issued_at
        if wait_s > 0:
            sentence = f"the service was restored from a backup, and takes requests again in {wait_s} s"
            raise Refusal(503, sentence, retry_after_s=wait_s)
        session = verified.session
        if session is not None and session.not_after <= self.restored_at + MAX_LIFETIME_S + CLOCK_SLACK_S:
            raise Refusal(
                401, "the session may be of the time before the service was restored; open one of full length"
            )
