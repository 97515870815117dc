"""The part of a grid that needs no key: clusters, prices, and what everybody may read of jobs."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import language
from deepgrid.client.engine.connection import Connection, open_connection
from deepgrid.client.engine.listing import States, newest_first, states_of, unix_s
from deepgrid.client.job import AsyncJob
from deepgrid.client.settings import ClientSettings
from deepgrid.client.values.amounts import Credits, Duration, wei_of
from deepgrid.client.values.cluster_offers import Offers, read_offers
from deepgrid.client.values.quotes import quoted
from deepgrid.client.values.returned import Cluster, Clusters, Quote
from deepgrid.client.values.wishes import wanted
from deepgrid.client.wallet import AsyncWallet, checked_address
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.errors import InputError

FilePath = str | os.PathLike[str]


class AsyncReader:
    """A grid that is read. `AsyncGrid` adds what a customer does with a key."""

    _wallet: Wallet | None

    def _setup(self, wallet: Wallet | None, book: FilePath | None, services_url: str, settings: ClientSettings) -> None:
        self._wallet = wallet
        self._book = None if book is None else Path(book)
        self._services_url = services_url
        self._settings = settings
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    # -- opening and closing -----------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Jobs continue."""
        self._closed = True
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            warnings.warn(
                f"The grid of {self._who()} was not closed; use it with `with`, or call close().",
                ResourceWarning,
                stacklevel=2,
            )

    async def _connect(self) -> Connection:
        async with self._connecting:
            if self._closed:
                raise InputError("This grid was closed.", next_step="Open another one.")
            if self._connection is None:
                self._connection = await open_connection(self._wallet, self._book, self._services_url, self._settings)
            return self._connection

    @property
    def address(self) -> str:
        """Address of the customer. Raises InputError for a grid that was opened read-only."""
        if self._wallet is None:
            raise InputError("This grid was opened read-only, without a key.")
        return self._wallet.address

    async def workflow(self, source: Source | Workflow, *, ignore_unknown_fields: bool = False) -> Workflow:
        """Read and check a workflow, and fetch its modules.

        Args:
            source: A path, YAML text, or the content as a mapping.
            ignore_unknown_fields: Leave out fields that are not of the language, with a warning.

        Returns:
            The workflow.

        Raises:
            InputError: It has faults, one line each.
        """
        return await read_workflow(source, ignore_unknown_fields=ignore_unknown_fields)

    async def clusters(self) -> Clusters:
        """The clusters of the grid, with hardware, prices and labels.

        Returns:
            All clusters, also those that are banned or wait for approval.

        Raises:
            ChainError: The node does not answer.
        """
        connection = await self._connect()
        providers = await connection.patiently(connection.chain.providers)
        return Clusters([Cluster(provider) for provider in providers])

    async def estimate(
        self, workflow: Source | Workflow, *, minutes: int = 60, uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
    ) -> Quote:  # fmt: skip
        """What each cluster would charge for a job. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            minutes: Minutes that the job runs.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.

        Returns:
            The quote, cheapest offer first.

        Raises:
            InputError: The workflow or an argument is wrong.
            ChainError: The node does not answer.
        """
        read = await read_workflow(workflow)
        order = language.order_of(read.definition, 0, name=read.name, cut_name=True, uses=uses, affinities=affinities)
        connection = await self._connect()
        return await connection.patiently(lambda: quoted(connection.chain, order, minutes))

    async def offers(
        self, workflow: Source | Workflow, credits: Credits, *, uses: Sequence[str] = (),
        affinities: Sequence[str] = (), min_time: Duration | None = None, max_price: Credits | None = None,
        provider: str | None = None,
    ) -> Offers:  # fmt: skip
        """What each cluster would be for a job: price, time, estimated start, speed. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits that would be locked.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            min_time: Time that the credits must buy, such as `"2h"`.
            max_price: Most credits per minute. The default is no limit.
            provider: Name or address of the only cluster to look at.

        Returns:
            All approved clusters: those that can take the job by price, then the others with the reason.

        Raises:
            InputError: The workflow or an argument is wrong.
            NotFound: No approved cluster has that name or address.
            ChainError: The node does not answer.
        """
        read = await read_workflow(workflow)
        order = language.order_of(
            read.definition, wei_of(credits), name=read.name, cut_name=True, uses=uses, affinities=affinities
        )
        wishes = wanted(min_time, max_price, None, "balanced")
        connection = await self._connect()
        return await connection.patiently(lambda: read_offers(connection.chain, order, wishes, provider))

    async def wallet_of(self, address: str) -> AsyncWallet:
        """The balances of any address.

        Args:
            address: The address, with its checksum.

        Returns:
            Its wallet. Only the own one can be spent.

        Raises:
            InputError: The address has no valid checksum.
        """
        return AsyncWallet(self._connect, checked_address(address))

    # -- jobs --------------------------------------------------------------------------------

    async def job(self, job_id: int) -> AsyncJob:
        """A job of any customer.

        Args:
            job_id: Number of the job.

        Returns:
            The job.

        Raises:
            NotFound: There is no such job.
            ChainError: The node does not answer.
        """
        return await AsyncJob.read(await self._connect(), job_id)

    async def jobs(
        self, status: States | None = None, since: datetime | None = None, *, customer: str | None = None,
    ) -> AsyncIterator[AsyncJob]:  # fmt: skip
        """The jobs of one customer, newest first. They are read in pages, as the caller asks for them.

        Args:
            status: Only jobs in this state, or one of these, such as `"running"`.
            since: Only jobs that were submitted at this time or later. Needs a time zone.
            customer: Address of the customer. The default is the own one.

        Yields:
            The jobs. What they wait for is known after `refresh`.

        Raises:
            InputError: A state or time is wrong.
            ChainError: The node does not answer.
        """
        wanted, since_s = states_of(status), unix_s(since)
        connection = await self._connect()
        async for job, cluster in newest_first(connection, customer or self.address):
            if job.submitted_at < since_s:
                return
            if wanted is None or job.status in wanted:
                yield AsyncJob(connection, job, cluster=cluster)

    def _who(self) -> str:
        return "read-only" if self._wallet is None else self._wallet.address

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._who()})"
