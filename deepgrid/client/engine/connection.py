"""An open connection of a client: the chain, the customer's session if there is a key, and what all jobs share."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.display.story import ClusterNames
from deepgrid.client.engine.idempotency import IdempotencyKey, RequestedJobs
from deepgrid.client.engine.poller import JobPoller
from deepgrid.client.session import CustomerSession
from deepgrid.client.settings import ClientSettings, log_outage, patient, patiently
from deepgrid.errors import InputError, NotFound

if TYPE_CHECKING:
    from deepgrid.lifecycle.job import Job
    from deepgrid.workflow.models.transport import TransportData

T = TypeVar("T")

logger = logging.getLogger("deepgrid.client")

_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_closing: set[asyncio.Task[None]] = set()


class Connection:
    """One grid, with the poller of its jobs. `open_connection` makes it.

    Attributes:
        chain: Reads the chain.
        reads: The same, and each read is retried for the client's patience.
        reads_forever: The same, and each read is retried without a limit.
        poller: Serves all waits for jobs.
        cluster_names: Names of clusters by address.
        spending: Held while credits are allowed and locked, so that no two calls change the allowance at once.
        uploads: Limits the uploads at the same time.
        settings: The client's settings.
        background: Tasks that end with the connection.
        outputs: Where the jobs that were submitted here send their output. It holds credentials: it is never shown.
    """

    def __init__(self, chain: Chain, session: CustomerSession | None, settings: ClientSettings) -> None:
        self.chain = chain
        self.settings = settings
        self.poller = JobPoller(chain, settings)
        self.reads = patient(chain, settings.patience_s, settings)
        self.reads_forever = patient(chain, None, settings)
        self.cluster_names = ClusterNames(self.reads)
        self.spending = asyncio.Lock()
        self.uploads = asyncio.Semaphore(settings.requests_at_once)
        self.background: set[asyncio.Task[None]] = set()
        self.outputs: dict[int, TransportData | None] = {}
        self._session = session
        self.loop = asyncio.get_running_loop()
        close = partial(_close, self.poller, session, chain)
        self._when_collected = weakref.finalize(self, _close_soon, self.loop, os.getpid(), close)
        self._when_collected.atexit = False
        _open.add(self)

    @property
    def session(self) -> CustomerSession:
        """The customer's session. Raises InputError if the grid was opened read-only."""
        if self._session is None:
            raise InputError("This grid was opened read-only, without a key.", next_step="Open it with `key=FILE`.")
        return self._session

    @property
    def has_key(self) -> bool:
        return self._session is not None

    @cached_property
    def requested(self) -> RequestedJobs:
        """What the customer has requested, as of the last `refresh_requested`. Raises InputError without a key."""
        return RequestedJobs(self.chain, self.session.address)

    async def refresh_requested(self, *, forever: bool = False) -> None:
        """Read what the customer has requested, after all transactions that may still request something.

        Raises ChainError (transient) if they are not mined for a long time.
        """
        address, wait_s = self.session.address, self.settings.mining_wait_s
        await self.patiently(lambda: self.chain.until_mined(address, wait_s), forever=forever)
        await self.patiently(self.requested.refresh, forever=forever)

    async def find_requested(self, definition_hash: str) -> Job | None:
        """Return the customer's job with this hash; None if there was none at the last `refresh_requested`.

        The job is read, because a reorganisation of the chain may have given its number to another one. Then all are
        read again. Raises ChainError.
        """
        while (job_id := self.requested.find(definition_hash)) is not None:
            with suppress(NotFound):
                job = await self.reads.job(job_id)
                if (job.customer, job.definition.definition_hash) == (self.session.address, definition_hash):
                    return job
            self.requested.forget()
            await self.refresh_requested()
        return None

    def idempotency_key(self, use: str, text: str) -> IdempotencyKey:
        """Return a key of the customer's wallet on this grid. Raises InputError."""
        return IdempotencyKey(self.session.sender.wallet, self.chain.book, use, text)

    async def patiently(self, read: Callable[[], Awaitable[T]], *, forever: bool = False) -> T:
        """Return the result of a read, which is retried for the client's patience, or without a limit."""
        settings = self.settings
        return await patiently(read, None if forever else settings.patience_s, settings.longest_pause_s, log_outage)

    async def close(self) -> None:
        """Close everything. Jobs continue."""
        for task in self.background:
            task.cancel()
        await asyncio.gather(*self.background, return_exceptions=True)
        self._when_collected.detach()
        _open.discard(self)
        await _close(self.poller, self._session, self.chain)


async def open_connection(
    wallet: Wallet | None, book: Path | None, services_url: str, settings: ClientSettings
) -> Connection:
    """Connect to the grid of `book`. Raises ConfigurationError or ChainError."""
    chain = await Chain.connect(AddressBook.load(book))
    session = None if wallet is None else CustomerSession(chain, wallet, services_url)
    return Connection(chain, session, settings)


async def close_left_open() -> None:
    """Close the connections of this event loop that are still open."""
    loop = asyncio.get_running_loop()
    mine = [connection for connection in _open if connection.loop is loop]
    await asyncio.gather(*(connection.close() for connection in mine), return_exceptions=True)


async def _close(poller: JobPoller, session: CustomerSession | None, chain: Chain) -> None:
    await poller.close()
    try:
        if session is not None:
            await session.close()
    finally:
        await chain.close()


def _close_soon(loop: asyncio.AbstractEventLoop, pid: int, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a connection that was collected open, in any thread. A child after a fork leaves it to its parent."""
    if pid == os.getpid() and not loop.is_closed():
        with suppress(RuntimeError):  # the loop was closed just now
            loop.call_soon_threadsafe(_start_closing, loop, close)


def _start_closing(loop: asyncio.AbstractEventLoop, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    task = loop.create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)
