"""The grid as a customer's program sees it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import language
from deepgrid.client.engine.changes import job_changes
from deepgrid.client.engine.interruption import noted
from deepgrid.client.engine.submission import submit
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_set import AsyncJobSet
from deepgrid.client.reader import AsyncReader, FilePath
from deepgrid.client.settings import DEFAULTS, ClientSettings
from deepgrid.client.sweep import OrderTerms, SweepLimits, start_sweep
from deepgrid.client.values.amounts import Credits, Duration, wei_of
from deepgrid.client.values.returned import JobChange, Quote
from deepgrid.client.values.wishes import Preference, wanted
from deepgrid.client.wallet import AsyncWallet
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.errors import ChainError, GridError

KEY_VARIABLE = "DPS_KEY_FILE"
DEFAULT_KEY = "~/.dps/key"


class AsyncGrid(AsyncReader):
    """A customer's access to a grid. It connects when it is first used.

    Example:
        async with AsyncGrid() as grid:
            job = await grid.run("train.yaml", credits=100)
            print(job.id, job.bill.cost)
    """

    def __init__(
        self, key: FilePath | None = None, book: FilePath | None = None, *, services_url: str = "",
        settings: ClientSettings = DEFAULTS,
    ) -> None:  # fmt: skip
        """Read the key.

        Args:
            key: File of the private key. The default is DPS_KEY_FILE, else `~/.dps/key`.
            book: Address book of the grid. The default is DEEPGRID_BOOK, else `~/.dps/grid.json`.
            services_url: URL of the services, instead of the one in the address book.
            settings: Times and limits.

        Raises:
            ConfigurationError: There is no key, or others can read its file.
        """
        wallet = Wallet.load(Path(key or os.environ.get(KEY_VARIABLE) or DEFAULT_KEY))
        self._setup(wallet, book, services_url, settings)

    @classmethod
    def read_only(cls, book: FilePath | None = None, *, settings: ClientSettings = DEFAULTS) -> Self:
        """The grid without a key: clusters, prices, and the public part of all jobs.

        Args:
            book: Address book of the grid, as for the constructor.
            settings: Times and limits.

        Returns:
            The grid. What needs a key raises InputError.
        """
        grid = cls.__new__(cls)
        grid._setup(None, book, "", settings)
        return grid

    @property
    def wallet(self) -> AsyncWallet:
        """The customer's credits, allowance and gas."""
        return AsyncWallet(self._connect, self.address)

    # -- submitting --------------------------------------------------------------------------

    async def submit(
        self, workflow: Source | Workflow, credits: Credits, *, name: str | None = None, uses: Sequence[str] = (),
        affinities: Sequence[str] = (), delegate_spending: bool = False, approve: bool = True,
        quote: Quote | None = None, key: str | None = None, min_time: Duration | None = None,
        max_price: Credits | None = None, give_up_after: Duration | None = None, prefer: Preference = "balanced",
    ) -> AsyncJob:  # fmt: skip
        """Submit a job, and lock credits for it. Credits that it does not use are returned.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock.
            name: Name of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the job from the allowance.
            approve: Raise an allowance that is too low, to exactly these credits.
            quote: A quote that must still hold: it is recent, and no price rose.
            key: Idempotency key. The same key with the same workflow finds the job that exists.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is one minute.
            max_price: Most credits per minute, which the contract enforces; `"any"` for no ceiling. The default is
                the dearest price of the quote, or else of the clusters that can take the job now.
            give_up_after: If no cluster has the job after this time, it is cancelled and refunded. At least 10 minutes.
                Default: never.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.

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
        read = await read_workflow(workflow)
        order = language.order_of(
            read.definition, wei_of(credits), name=read.name if name is None else name, cut_name=name is None,
            uses=uses, affinities=affinities, delegate_spending=delegate_spending, warnings=read.validate(),
        )  # fmt: skip
        wishes = wanted(min_time, max_price, give_up_after, prefer)
        connection = await self._connect()
        job_id = await submit(connection, order, wishes, approve=approve, quote=quote, key=key)
        with noted(f"Job {job_id} was submitted."):
            try:
                return await AsyncJob.read(connection, job_id)
            except GridError as error:
                raise ChainError(
                    f"Job {job_id} was submitted, but cannot be read: {error.message}", transient=False,
                    next_step=f"Do not submit it again. See it with `dps job get {job_id}`.",
                ) from error  # fmt: skip

    async def run(self, workflow: Source | Workflow, credits: Credits, **options: Any) -> AsyncJob:
        """Submit a job, wait until it is over, and check that it finished.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock.
            options: Further options of `submit`.

        Returns:
            The finished job.

        Raises:
            JobError: The job did not finish.
            GridError: As `submit` raises.
        """
        job = await self.submit(workflow, credits, **options)
        return await (await job.wait()).check()

    async def map(
        self, workflow: Source | Workflow, parameters: Iterable[Mapping[str, object]], credits: Credits, *,
        at_once: int = 20, most: Credits | None = None, pack: int = 1, key: str | None = None, name: str | None = None,
        uses: Sequence[str] = (), affinities: Sequence[str] = (), delegate_spending: bool = False,
        min_time: Duration | None = None, max_price: Credits | None = None, give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
    ) -> AsyncJobSet:  # fmt: skip
        """Submit one job per parameter set, a limited number at a time, in the background while the grid is open.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            parameters: Parameter sets: values of environment variables of the job, by name.
            credits: Credits to lock for each job.
            at_once: Most jobs that wait or run at the same time.
            most: Most credits that are locked for these jobs at the same time. None means no limit.
            pack: Parameter sets per job, which runs them one after another; for runs of seconds.
            key: Idempotency key. An interrupted call that is repeated with its key goes on where it was.
            name: Name of all jobs, of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the jobs from the allowance.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is one minute.
            max_price: Most credits per minute, which the contract enforces; `"any"` for no ceiling. The default is
                the dearest price of the clusters that can take a job at the start of this call.
            give_up_after: A job that no cluster has after this time is cancelled and refunded. At least 10 minutes.
                Default: never.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.

        Returns:
            The set of the jobs.

        Raises:
            InputError: The workflow, a parameter set or an argument is wrong. Nothing was locked.
            ChainError: The node does not answer.
        """
        read = await read_workflow(workflow)
        own_name = read.name if name is None else name
        wishes = wanted(min_time, max_price, give_up_after, prefer)
        terms = OrderTerms(wei_of(credits), own_name, name is None, uses, affinities, delegate_spending, wishes)
        limits = SweepLimits(at_once, None if most is None else wei_of(most))
        sweep = await start_sweep(await self._connect(), read, parameters, terms, limits, pack=pack, key=key)
        return AsyncJobSet(sweep, sweep.entries)

    async def watch(self, cursor: str | None = None) -> AsyncIterator[JobChange]:
        """Changes of the own jobs: new jobs and new states. It never ends; outages of the node only delay it.

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
