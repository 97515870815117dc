"""Refuses requests that arrive twice, even after a restore of the database.

Nonces that arrive while others are written share the next transaction. Each answer to a long poll uses up a nonce, and
one transaction per nonce would let hundreds of followers delay an append.

A backup lacks the nonces and revocations since it was made. So requests of that time could be sent again, and revoked
session keys would work again. Nothing accepted before the restore is accepted after it:

* A request was accepted at most WINDOW_S before its own time. So requests up to WINDOW_S after the restore are refused.
* A session does not say when it was opened, but an accepted one ended at most MAX_LIFETIME_S and CLOCK_SLACK_S later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError

from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import WINDOW_S, Verified
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S
from deepgrid.services.storage.database import Database, Restore, UsedNonce


class Nonces:
    """The used nonces of all processes on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Verified, asyncio.Future[bool]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def use_up(self, verified: Verified) -> bool:
        """Record the nonce of a request. False if it was used before. Raises SQLAlchemyError."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((verified, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        return await done

    async def close(self) -> None:
        """Wait until all nonces are written. Call it before the database is closed."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                fresh = await self._write([verified for verified, _ in batch])
            except Exception as error:  # each request gets it
                for _, done in batch:
                    if not done.done():  # its request was cut off
                        done.set_exception(error)
                continue
            for verified, done in batch:
                if not done.done():
                    done.set_result((verified.signer, verified.nonce) in fresh)

    async def _write(self, batch: Sequence[Verified]) -> set[tuple[str, bytes]]:
        """Insert the nonces. Returns those that are new: the primary key refuses the others, even across processes."""
        rows = [{"signer": one.signer, "nonce": one.nonce, "expires_at": one.expires_at} for one in batch]
        rows.sort(key=lambda row: (row["signer"], row["nonce"]))  # two processes never wait for each other
        try:
            async with self._database.write() as session:
                await session.execute(insert(UsedNonce), rows)
        except IntegrityError:
            if len(batch) == 1:
                return set()
            return set().union(*[await self._write([one]) for one in batch])
        return {(one.signer, one.nonce) for one in batch}


@dataclass(frozen=True, slots=True)
class Fence:
    """The time of the last restore in unix seconds, None without one."""

    restored_at: int | None = None

    @classmethod
    async def read(cls, database: Database) -> Self:
        """Return the fence of this database. It does not change while a process serves the database."""
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
