"""The grid as a customer's program sees it."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, SupportsIndex

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client.cluster_offers import Cluster, Clusters, Offers, read_offers
from deepgrid.client.engine.changes import job_changes
from deepgrid.client.engine.connection import Connection, open_connection
from deepgrid.client.engine.submission import place
from deepgrid.client.errors import note_interruption
from deepgrid.client.job import AsyncJob, read_job
from deepgrid.client.job_set import AsyncJobSet, start_sweep
from deepgrid.client.job_values import Credits, Duration, JobChange, wei_of
from deepgrid.client.order import Preference, Terms, order_of
from deepgrid.client.quotes import Quote, quote_for
from deepgrid.client.repeat.chosen_input import check_ways, with_input
from deepgrid.client.repeat.deposit import Deposit, minutes_of, order_for, with_deposit
from deepgrid.client.repeat.marks import Tags, mark_of
from deepgrid.client.repeat.retries import Retries, checked_retries
from deepgrid.client.settings import DEFAULTS, ClientSettings
from deepgrid.client.sweep.driver import SweepLimits
from deepgrid.client.sweep.job_history import JobHistory
from deepgrid.client.wallet import AsyncWallet, checked_address
from deepgrid.client.workflow import FilePath, Source, Workflow, read_workflow
from deepgrid.errors import ChainError, GridError, InputError

KEY_VARIABLE = "DPS_KEY_FILE"
DEFAULT_KEY = "~/.dps/key"


class AsyncGrid(JobHistory):
    """A customer's access to a grid. It connects when it is first used.

    Example:
        async with AsyncGrid() as grid:
            job = await grid.run("train.yaml", credits=100)
            print(job.id, job.bill.cost)
    """

    def __init__(
        self,
        key: FilePath | None = None,
        book: FilePath | None = None,
        *,
        services_url: str = "",
        settings: ClientSettings = DEFAULTS,
    ) -> None:
        """Read the key.

        Args:
            key: File of the private key. The default is DPS_KEY_FILE, or `~/.dps/key` if it is not set.
            book: Address book of the grid. The default is DEEPGRID_BOOK, or `~/.dps/grid.json` if it is not set.
            services_url: URL of the services, instead of the one in the address book.
            settings: Times and limits.

        Raises:
            ConfigurationError: There is no key, or others can read its file.
        """
        wallet = Wallet.load(Path(key or os.environ.get(KEY_VARIABLE) or DEFAULT_KEY))
        self._setup(wallet, book, services_url, settings)

    @classmethod
    def read_only(cls, book: FilePath | None = None, *, settings: ClientSettings = DEFAULTS) -> Self:
        """Return the grid without a key: clusters, prices, and the public part of all jobs.

        Args:
            book: Address book of the grid, as for the constructor.
            settings: Times and limits.

        Returns:
            The grid. What needs a key raises InputError.
        """
        grid = cls.__new__(cls)
        grid._setup(None, book, "", settings)
        return grid

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

    @property
    def wallet(self) -> AsyncWallet:
        """The customer's credits, allowance and gas."""
        return AsyncWallet(self._connect, self.address)

    # -- reading -------------------------------------------------------------------------------

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
        """Return the clusters of the grid, with hardware, prices and labels.

        Returns:
            All clusters, including those that are banned or wait for approval.

        Raises:
            ChainError: The node does not answer.
        """
        connection = await self._connect()
        providers = await connection.reads.providers()
        return Clusters([Cluster(provider) for provider in providers])

    async def estimate(
        self,
        workflow: Source | Workflow,
        *,
        minutes: int = 60,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
    ) -> Quote:
        """Return what each cluster would charge for a job. Nothing is sent.

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
        order = order_of(read, 0, None, Terms.of(uses, affinities))
        connection = await self._connect()
        return await quote_for(connection.reads, order, minutes)

    async def deposit(
        self,
        workflow: Source | Workflow,
        time: Duration,
        *,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        max_price: Credits | None = None,
    ) -> Deposit:
        """Return what a job would lock to run for a time, and its cost at each cluster. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            time: How long the job may run, such as `"4h"`. Partial minutes are rounded up.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            max_price: Maximum credits per minute. The default is no limit.

        Returns:
            The deposit. `print` shows it as a sentence.

        Raises:
            InputError: The workflow or an argument is wrong, or no cluster can take the job now.
            ChainError: The node does not answer.
        """
        read = await read_workflow(workflow)
        order = order_of(read, 0, None, Terms.of(uses, affinities, max_price=max_price))
        return (await order_for(await self._connect(), order, minutes_of(time)))[1]

    async def offers(
        self,
        workflow: Source | Workflow,
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        provider: str | None = None,
    ) -> Offers:
        """Return each cluster's offer for a job: price, time, estimated start, speed. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits that would be locked.
            time: Instead of credits: how long the job may run, such as `"4h"`.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            min_time: Time that the credits must buy, such as `"2h"`.
            max_price: Maximum credits per minute. The default is no limit.
            provider: Name or address of the only cluster to look at.

        Returns:
            All approved clusters: those that can take the job by price, then the others with the reason.

        Raises:
            InputError: The workflow or an argument is wrong.
            NotFound: No approved cluster has that name or address.
            ChainError: The node does not answer.
        """
        read = await read_workflow(workflow)
        terms = Terms.of(uses, affinities, min_time=min_time, max_price=max_price)
        connection = await self._connect()
        order = await with_deposit(connection, order_of(read, 0, None, terms), credits, time)
        return await read_offers(connection.reads, order, provider)

    async def wallet_of(self, address: str) -> AsyncWallet:
        """Return the balances of any address.

        Args:
            address: The address, with its checksum.

        Returns:
            Its wallet. Only your own account's credits can be spent.

        Raises:
            InputError: The address has no valid checksum.
        """
        return AsyncWallet(self._connect, checked_address(address))

    # -- submitting --------------------------------------------------------------------------

    async def submit(
        self,
        workflow: Source | Workflow,
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        name: str | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        delegate_spending: bool = False,
        approve: bool = True,
        quote: Quote | None = None,
        key: str | None = None,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
        tags: Tags | None = None,
        note: str = "",
        send: FilePath | Sequence[FilePath] = (),
        input_from: SupportsIndex | None = None,
        retries: int = 0,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        cache: bool = False,
        private: bool = False,
    ) -> AsyncJob:
        """Submit a job, and lock credits for it. Credits that it does not use are returned.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock.
            time: Instead of credits: how long the job may run, such as `"4h"`. This locks the price at the most
                expensive cluster that can take it now. Partial minutes are rounded up.
            name: Name of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the job from the allowance.
            approve: Raise an allowance that is too low, to exactly these credits.
            quote: A quote that must still hold: it is recent, and no price rose.
            key: Idempotency key. The same key with the same workflow finds the job that exists.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is `time`, or a minute.
            max_price: Maximum credits per minute, which the contract enforces; `"any"` for no ceiling. The default is
                the highest price in the quote, or among the clusters that can take the job now.
            give_up_after: If no cluster has the job after this time, 10 minutes or more, it is cancelled and refunded.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.
            tags: Tags to find the job by, such as `["project=wing"]`. They are not on chain.
            note: A note on the job, of at most 500 characters.
            send: Files and folders of this machine, which the job finds in `$DEEPSQUARE_INPUT`.
            input_from: Another job of the same customer, or its number, whose output becomes the input.
            retries: While you wait for it, retry the job up to this many times if it fails for a reason other than its
                program. It then has the number of its last attempt.
            after: A job, or its number, that must finish first. If it does not, the new job ends with a refund.
            after_any: A job that must end first, in any way.
            cache: If an equal job that was submitted so has finished, return it, and lock nothing.
            private: Encrypt the files, and let the job encrypt its output, for this key and the clusters that fit.

        Returns:
            The job.

        Raises:
            InputError: The workflow or an argument is wrong, or there are too few credits.
            QuoteExpired: The quote holds no more.
            IdempotencyConflict: The key was used with another workflow.
            ContractError: The contract refuses the request.
            ServiceError: The services do not answer, or refuse the definition.
            ChainError: The node does not answer. If it is not transient, the job may have been submitted.
        """
        check_ways(key, cache=cache, private=private)
        read = await read_workflow(workflow)
        terms = Terms.of(uses, affinities, delegate_spending, min_time, max_price, give_up_after, prefer)
        terms = terms.following(after, after_any)
        mark, more = mark_of(tags, note), Retries(checked_retries(retries), read, tags, note, approve, key, cache)
        connection = await self._connect()
        read = more.workflow = await with_input(connection, read, send, input_from, terms, private)
        order = await with_deposit(connection, order_of(read, 0, name, terms), credits, time)
        job_id, known = await place(connection, order, approve=approve, quote=quote, key=key, mark=mark, cache=cache)
        with note_interruption(f"Job {job_id} was submitted."):
            try:
                job = await read_job(connection, job_id, more)
                job._is_cached = known
                return job
            except GridError as error:
                words = f"Job {job_id} was submitted, but cannot be read: {error.message}"
                next_step = f"Do not submit it again. See it with `dps job get {job_id}`."
                raise ChainError(words, transient=False, next_step=next_step) from error

    async def run(self, workflow: Source | Workflow, credits: Credits | None = None, **options: Any) -> AsyncJob:
        """Submit a job, wait until it is over, and check that it finished.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock; or give `time`.
            options: Further options of `submit`.

        Returns:
            The finished job.

        Raises:
            JobError: The job did not finish.
            GridError: As `submit` raises.
        """
        return await (await (await self.submit(workflow, credits, **options)).wait()).check()

    async def map(
        self,
        workflow: Source | Workflow,
        parameters: Iterable[Mapping[str, object]],
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        at_once: int = 20,
        most: Credits | None = None,
        pack: int = 1,
        key: str | None = None,
        name: str | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        delegate_spending: bool = False,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
        tags: Tags | None = None,
        note: str = "",
        send: FilePath | Sequence[FilePath] = (),
        input_from: SupportsIndex | None = None,
        retries: int = 0,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        private: bool = False,
        approve: bool = True,
        progress: bool = True,
    ) -> AsyncJobSet:
        """Submit one job per parameter set, a limited number at a time, in the background while the grid is open.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            parameters: Parameter sets: values of environment variables of the job, by name.
            credits: Credits to lock for each job.
            time: Instead of credits: how long each job may run, as for `submit`.
            at_once: Most jobs that wait or run at the same time.
            most: Maximum credits locked for these jobs at the same time. None means no limit.
            pack: Parameter sets per job, which runs them one after another; for runs of seconds.
            key: Idempotency key. A repeated call with the same key continues where the interrupted one stopped.
            name: Name of all jobs, of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the jobs from the allowance.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is one minute.
            max_price: Maximum credits per minute, as for `submit`. The default is of the start of this call.
            give_up_after: A job that no cluster has after this time is cancelled and refunded, as for `submit`.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.
            tags: Tags of all jobs, as for `submit`.
            note: A note on all jobs.
            send: Files and folders for each job, as for `submit`. They are sent and stored once.
            input_from: Another job, or its number, whose output becomes the input of each.
            retries: Retry a job up to this many times if it fails for a reason other than its program.
            after: A job, or its number, that must finish before all of these.
            after_any: A job that must end before all of these, in any way.
            private: Encrypt the files, as for `submit`.
            approve: Raise an allowance that is too low, to exactly the credits of the jobs that are requested together.
            progress: Show a bar while `wait` or `results` waits, in a terminal or notebook.

        Returns:
            The set of the jobs.

        Raises:
            InputError: The workflow, a parameter set or an argument is wrong. Nothing was locked.
            ChainError: The node does not answer.
        """
        check_ways(key, private=private)
        read = await read_workflow(workflow)
        terms = Terms.of(uses, affinities, delegate_spending, min_time, max_price, give_up_after, prefer)
        terms = terms.following(after, after_any)
        most_wei = None if most is None else wei_of(most)
        limits, mark = SweepLimits(at_once, most_wei, pack, checked_retries(retries), approve), mark_of(tags, note)
        connection = await self._connect()
        read = await with_input(connection, read, send, input_from, terms, private)
        order = await with_deposit(connection, order_of(read, 0, name, terms), credits, time)
        sweep = await start_sweep(connection, order, parameters, limits, key, mark)
        return AsyncJobSet(sweep, sweep.entries, progress=progress)

    # -- jobs --------------------------------------------------------------------------------

    async def job(self, job_id: int) -> AsyncJob:
        """Return a job of any customer.

        Args:
            job_id: Number of the job.

        Returns:
            The job.

        Raises:
            NotFound: There is no such job.
            ChainError: The node does not answer.
        """
        return await read_job(await self._connect(), job_id)

    async def watch(self, cursor: str | None = None) -> AsyncIterator[JobChange]:
        """Yield changes of your jobs: new jobs and new states. It never ends; outages of the node only delay it.

        A program that starts again with the cursor of the last change that it handled gets each later change once. If
        the chain replaces blocks, a change may vanish or come again: see `ClientSettings.confirmations`.

        Args:
            cursor: The cursor of a change. None means from now on; `"start"` means all changes since the first job.

        Yields:
            The changes, in the order of the chain.

        Raises:
            InputError: The text is not a cursor, or the grid was opened read-only.
        """
        async for change in job_changes(await self._connect(), self.address, cursor):
            yield change

    def _who(self) -> str:
        return "read-only" if self._wallet is None else self._wallet.address

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._who()})"
