"""Uses up the nonces of requests. Nonces that arrive while others are written share the next transaction.

Each answer to a long poll uses up a nonce. One transaction per nonce would let hundreds of followers delay an append.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from deepgrid.services.signing.request_signing import Verified
from deepgrid.services.storage.database import Database, UsedNonce


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
        """Insert the nonces. Returns those that are new: the primary key refuses the others, also across processes."""
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
