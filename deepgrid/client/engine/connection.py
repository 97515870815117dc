"""An open connection of a client: the chain, the customer's session if there is a key, and what all jobs share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.display.story import ClusterNames
from deepgrid.client.engine.patience import patiently
from deepgrid.client.engine.poller import JobPoller
from deepgrid.client.settings import ClientSettings
from deepgrid.customer.session import CustomerSession
from deepgrid.errors import GridError, InputError

if TYPE_CHECKING:
    from deepgrid.workflow.transport import TransportData

T = TypeVar("T")

logger = logging.getLogger("deepgrid.client")


class Connection:
    """One grid, with the poller of its jobs. `open_connection` makes it.

    Attributes:
        chain: Reads the chain.
        poller: Serves all waits for jobs.
        cluster_names: Names of clusters by address.
        spending: Held while credits are allowed and locked, so that no two calls change the allowance at once.
        uploads: Limits the uploads at the same time.
        settings: The client's settings.
        outputs: Where the jobs that were submitted here send their output. It holds credentials: it is never shown.
    """

    def __init__(self, chain: Chain, session: CustomerSession | None, settings: ClientSettings) -> None:
        self.chain = chain
        self.settings = settings
        self.poller = JobPoller(chain, settings)
        self.cluster_names = ClusterNames(chain)
        self.spending = asyncio.Lock()
        self.uploads = asyncio.Semaphore(settings.requests_at_once)
        self.outputs: dict[int, TransportData | None] = {}
        self._session = session

    @property
    def session(self) -> CustomerSession:
        """The customer's session. Raises InputError if the grid was opened read-only."""
        if self._session is None:
            raise InputError(
                "This grid was opened read-only, without a key.", next_step="Open it with `AsyncGrid(key=FILE)`."
            )
        return self._session

    @property
    def has_key(self) -> bool:
        return self._session is not None

    async def patiently(self, read: Callable[[], Awaitable[T]], *, forever: bool = False) -> T:
        """The result of a read, which is retried for the client's patience, or without a limit."""
        settings = self.settings
        return await patiently(read, None if forever else settings.patience_s, settings.longest_pause_s, _log_outage)

    async def close(self) -> None:
        """Close everything. Jobs continue."""
        await self.poller.close()
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            await self.chain.close()


async def open_connection(
    wallet: Wallet | None, book: Path | None, services_url: str, settings: ClientSettings
) -> Connection:
    """Connect to the grid of `book`. Raises ConfigurationError or ChainError."""
    chain = await Chain.connect(AddressBook.load(book))
    session = None if wallet is None else CustomerSession(chain, wallet, services_url)
    return Connection(chain, session, settings)


def _log_outage(error: GridError) -> None:
    logger.warning("a read failed, trying again: %s", error)
