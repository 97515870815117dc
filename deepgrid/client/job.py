"""A job of the grid, as the client last read it, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NoReturn, Self

from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.client.bills.receipted_job import ReceiptedJob
from deepgrid.client.display import story
from deepgrid.client.display.html import job_html
from deepgrid.client.display.record import JobEnd, JobEvent, JobRecord
from deepgrid.client.display.screens import screen_here, show_event
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.live import LiveView, read_record, read_remarks
from deepgrid.client.engine.output import JobOutput
from deepgrid.client.errors import WaitTimeout, error_of, how_to_continue, limit_words, note_interruption
from deepgrid.client.job_output import JobFiles
from deepgrid.client.job_values import (
    Bill,
    Credits,
    Duration,
    LogLine,
    Parameters,
    Remark,
    Step,
    ViewMessage,
    bill_of,
    credits_of,
    job_number,
    moment_of,
    seconds_of,
    wei_of,
)
from deepgrid.client.repeat.job_files import kept_output
from deepgrid.client.repeat.repeatable import RepeatableJob
from deepgrid.client.repeat.retries import Retries
from deepgrid.client.tunnel.live_job import LiveJob
from deepgrid.client.workflow import FilePath, Source, Workflow, read_workflow
from deepgrid.errors import ChainError, GridError, InputError
from deepgrid.lifecycle import exits
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus

LAST_LINES = 20  # of a failed job's output, in its error


class AsyncJob(RepeatableJob, JobFiles, LiveJob, ReceiptedJob):
    """A job. Its attributes are what the client read last: `refresh`, `wait` and `watch` read it again."""

    def __init__(
        self,
        connection: Connection,
        job: ChainJob,
        *,
        cluster: str = "",
        parameters: Parameters | None = None,
        retries: Retries | None = None,
    ) -> None:
        self._connection = connection
        self._job = job
        self._cluster = cluster  # its name
        self._remarks: tuple[Remark, ...] | None = None  # None if the services were not asked or did not answer
        self._parameters = parameters
        self._retries = retries
        self._last_transaction = ""

    @property
    def name(self) -> str:
        """Name of the job. Its customer chose it."""
        return self._job.name

    @property
    def status(self) -> JobStatus:
        """State of the job; `status.words` says it in words."""
        return self._job.status

    @property
    def over(self) -> bool:
        """Whether the job is over and its bill final."""
        return self._job.status.cold

    @property
    def customer(self) -> str:
        """Address of the customer."""
        return self._job.customer

    @property
    def cluster(self) -> str:
        """Name of the cluster; empty while none is assigned."""
        return self._cluster

    @property
    def provider(self) -> str | None:
        """Address of the cluster's provider; None while no cluster is assigned."""
        return self._job.provider

    @property
    def waits_for(self) -> str:
        """What the job waits for, and why; empty while it runs and when it is over."""
        return story.waiting_words(self._job, self._cluster, self._remarks)

    @property
    def remarks(self) -> tuple[Remark, ...] | None:
        """Remarks of the grid on the job, oldest first; None if the services did not answer."""
        return self._remarks

    @property
    def outcome(self) -> str:
        """How the job ended, in words; empty until then."""
        return exits.outcome(self._job) if self.over else ""

    @property
    def exit_code(self) -> int | None:
        """Exit status as a shell gives it: 3, or 137 after signal 9. None if it has none."""
        if not self.over or (not self._job.exit_status and self.status is not JobStatus.FINISHED):
            return None
        return exits.own_exit_status(self._job.exit_status)

    @property
    def exit_status(self) -> int | None:
        """Exit status of `dps` for this job: the job's own, or one for its final state. None until it is over."""
        return story.exit_status_of(self._job) if self.over else None

    @property
    def bill(self) -> Bill:
        """The bill of a job that is over.

        Raises:
            InputError: The job is not over.
        """
        if not self.over:
            raise InputError(
                f"Job {self.id} has no bill yet: it is {self.status.words}.", next_step="Wait for it first."
            )
        return bill_of(self._job)

    @property
    def locked(self) -> Decimal:
        """Credits that are, or were, locked for the job."""
        return credits_of(self._job.locked_wei)

    @property
    def held(self) -> Decimal:
        """Credits that the contract still holds for the job; 0 when it is over."""
        return credits_of(self._job.held_wei)

    @property
    def held_until(self) -> datetime | None:
        """When a further `cancel` returns the credits that are held, if the cluster reports nothing before.

        None unless a cancel was requested.
        """
        return moment_of(self._job.held_until)

    @property
    def rate(self) -> Decimal | None:
        """Credits per minute; None while no cluster is assigned."""
        return credits_of(self._job.rate_wei_per_minute) if self._job.provider else None

    @property
    def submitted(self) -> datetime | None:
        """When the job was requested."""
        return moment_of(self._job.submitted_at)

    @property
    def started(self) -> datetime | None:
        """When its cluster reported that it runs; None if it never ran."""
        return moment_of(self._job.started_at)

    @property
    def ended(self) -> datetime | None:
        """When it was settled; None until then."""
        return moment_of(self._job.ended_at)

    @property
    def on_chain(self) -> ChainJob:
        """All values of the job on chain: amounts in wei, times in unix seconds, memory in MB."""
        return self._job

    @property
    def parameters(self) -> Parameters | None:
        """The parameters that `map` gave to the job, with `pack` a tuple of them; None for other jobs."""
        return self._parameters

    @property
    def earlier_attempts(self) -> list[int]:
        """Numbers of the failed jobs that this one repeats, by `retries`, oldest first."""
        return [] if self._retries is None else list(self._retries.earlier)

    @property
    def last_transaction(self) -> str:
        """Hash of the last transaction that `cancel` or `top_up` sent; empty before."""
        return self._last_transaction

    # -- reading -----------------------------------------------------------------------------

    async def refresh(self) -> Self:
        """Read the job, its cluster and its remarks again.

        Returns:
            The job itself.

        Raises:
            ChainError: The node does not answer.
        """
        self._job = await self._connection.reads.job(self.id)
        return await self._with_details()

    async def events(self) -> AsyncIterator[JobEvent]:
        """Yield the live view of the job, from its request until it is over.

        Outages of the node and of the services only delay it. Without a key it has no remarks and no output.

        Yields:
            Step for each state, Remark, LogLine, ViewMessage for an outage, and at the end one JobEnd with the bill.

        Raises:
            ChainError: The node refuses to answer.
        """
        async with aclosing(LiveView(self._connection, self.id).events()) as events:
            async for event in events:
                if isinstance(event, JobEnd):
                    self._update(event.record.job, event.record.cluster)
                yield event

    async def record(self) -> JobRecord:
        """Read the job again with all that is known about it: history, division of its deposit, remarks.

        Returns:
            The record.

        Raises:
            ChainError: The node does not answer.
        """
        record = await self._connection.patiently(lambda: read_record(self._connection, self.id))
        self._job, self._cluster, self._remarks = record.job, record.cluster, record.remarks
        return record

    async def download(
        self, to: FilePath, only: str | Sequence[str] | None = None, *, workflow: Source | Workflow | None = None
    ) -> list[Path]:
        """Fetch the output: from the grid if it keeps it, otherwise from the bucket or web address in the workflow.

        Files are checked by size, and by checksum where the grid or a bucket gives one. An interrupted download
        continues where it stopped, and existing files are kept. Several files that came as one archive are unpacked.

        Args:
            to: The target folder. It is created if it is missing.
            only: Patterns of names, such as `*.png`; `*` also matches `/`. None means all files.
            workflow: The workflow of the job. It is needed only if another machine submitted the job, and the output
                has a secret.

        Returns:
            The files, in the order of their names.

        Raises:
            NoOutput: The workflow is unknown or names no output, or nothing is there.
            NotFound: The file of the job is not kept any more, or is another customer's.
            ServiceError: The storage does not answer, or refuses.
            InputError: The folder cannot be written, or two files would have the same path.
            ConfigurationError: The extra `s3` is missing.
        """
        from deepgrid.client.download import download_output, output_of  # here: few programs download

        read = None if workflow is None else await read_workflow(workflow)
        known = self._connection.outputs
        elsewhere = read is not None and read.definition.output is not None and read.definition.output.grid is None
        if not elsewhere and (found := await self._fetch_kept(Path(to), only)) is not None:
            return found
        if read is None and self.id not in known and self._connection.has_key:
            known[self.id] = await kept_output(self._connection, self._job)
        output = output_of(self.id, known, None if read is None else read.definition)
        return await download_output(output, Path(to), only, self._connection.settings)

    @property
    async def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
        changes = await self._connection.reads.history(self.id)
        return story.steps_of(changes, self.on_chain, self.cluster)

    @property
    async def transactions(self) -> list[str]:
        """Hashes of the transactions that changed its state, oldest first."""
        return [step.transaction for step in await self.history]

    # -- waiting -----------------------------------------------------------------------------

    async def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the job is over. Outages of the node only delay it. With `retries` it is run again here.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The job itself.

        Raises:
            WaitTimeout: The time limit is over. The job continues.
            GridError: With `retries`, the job cannot be run again.
        """
        limit_s = seconds_of(timeout)
        deadline = None if limit_s is None else asyncio.get_running_loop().time() + limit_s
        while not self.over or await self._run_again():
            try:
                with note_interruption(how_to_continue(self.id)):
                    async with asyncio.timeout_at(deadline):
                        async for job in self._connection.poller.until([self.id], lambda job: job.status.cold):
                            self._job = job
            except TimeoutError:
                raise WaitTimeout(f"Job {self.id} is not over after {limit_words(timeout)}.", self) from None
            await self._with_details()
        return self

    async def check(self) -> Self:
        """Raise an error unless the job finished successfully.

        Returns:
            The job itself.

        Raises:
            InputError: The job is not over.
            JobFailed: It failed. The error has the exit code and the last lines of its output.
            JobCancelled: It was cancelled.
            OutOfCredits: It used up its credits.
            JobPanicked: The grid ended it with a full refund.
        """
        if not self.over:
            raise InputError(f"Job {self.id} is not over: it is {self.status.words}.", next_step="Wait for it first.")
        if self.status is not JobStatus.FINISHED:
            raise error_of(self, await self._last_lines())
        return self

    async def watch(self) -> Self:
        """Show the job and its output until it is over: one cell of a notebook is redrawn, elsewhere lines are printed.

        Outages only delay it. Interrupting it ends the view, not the job.

        Returns:
            The job itself.

        Raises:
            ConfigurationError: In a notebook, the extra `notebook` is missing.
        """
        screen = screen_here()
        try:
            more = True
            while more:
                async for event in self.events():
                    show_event(screen, self.id, event)
                    if not isinstance(event, LogLine | ViewMessage):
                        await self._connection.patiently(self.refresh, forever=True)
                        screen.show_job(self)
                more = await self._run_again()
        finally:
            screen.close()
        return self

    # -- changing ----------------------------------------------------------------------------

    async def cancel(self) -> Self:
        """Cancel the job: at once before a cluster has claimed it, from then on by a request to the cluster.

        If the cluster does not answer in time, a further call returns what cannot be billed any more. From `held_until`
        on, it ends the job and returns the rest.

        Returns:
            The job itself.

        Raises:
            ContractError: It is over, or is another customer's.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
        return await self._changed_by(await self._connection.session.writer.cancel_job(self.id))

    async def after_cancel(self) -> str:
        """Return the effect of the job's cancellation, in words.

        Returns:
            How many credits came back, or what the cluster does next and by when.

        Raises:
            ChainError: The node does not answer.
        """
        return story.cancel_words(self.on_chain)

    async def top_up(self, credits: Credits, *, approve: bool = True) -> Self:
        """Buy more time for a job that a cluster has claimed. What it does not use is returned.

        Args:
            credits: Credits to add.
            approve: Raise an allowance that is too low to exactly this amount.

        Returns:
            The job itself.

        Raises:
            ContractError: No cluster has claimed it, or it is over.
            InputError: There are too few credits.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
        async with self._connection.spending:
            with note_interruption(
                f"Job {self.id} may have been topped up; look at `dps job get {self.id}` before you repeat it."
            ):
                receipt = await self._connection.session.top_up(self.id, wei_of(credits), approve=approve)
        return await self._changed_by(receipt)

    async def limit_top_ups(self, credits: Credits) -> Self:
        """Let the grid top up the job from the allowance by at most this much from now on.

        Args:
            credits: Credits in total; 0 forbids automatic top-ups.

        Returns:
            The job itself.

        Raises:
            ContractError: The job is over, or belongs to another customer.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
        return await self._changed_by(
            await self._connection.session.writer.set_spending_limit(self.id, wei_of(credits))
        )

    def __index__(self) -> int:
        return self.id

    # -- parts -------------------------------------------------------------------------------

    def _update(self, job: ChainJob, cluster: str) -> None:
        self._job, self._cluster = job, cluster

    async def _with_details(self) -> Self:
        """Read what the chain does not keep with the job: the cluster's name and, while it waits, remarks."""
        self._cluster = await self._connection.cluster_names.of(self.provider)
        if self.status.hot and self.status is not JobStatus.RUNNING and self._connection.has_key:
            self._remarks = await read_remarks(self._connection, self.id)
        return self

    async def _changed_by(self, receipt: Receipt) -> Self:
        """Read the job after its transaction. Whatever fails then names the transaction."""
        self._last_transaction = receipt.tx_hash
        done = f"Transaction {receipt.tx_hash} changed job {self.id}"
        with note_interruption(f"{done}."):
            try:
                return await self.refresh()
            except GridError as error:
                next_step = f"Do not send it again. See the job with `dps job get {self.id}`."
                words = f"{done}, which cannot be read: {error.message}"
                raise ChainError(words, transient=False, next_step=next_step) from error

    async def _last_lines(self) -> tuple[str, ...]:
        if self.status is not JobStatus.FAILED or not self._connection.has_key:
            return ()
        output = JobOutput(self._connection, self.id, follow=True)
        return await output.last_lines(LAST_LINES, self._connection.settings.last_lines_s)

    def _repr_html_(self) -> str:
        return job_html(self)

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same job of the same grid, whatever was read of it."""
        return isinstance(other, AsyncJob) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[int, str, int]:
        book = self._connection.chain.book
        return book.chain_id, book.meta_scheduler, [*self.earlier_attempts, self.id][0]  # retries must not change it

    def __reduce__(self) -> NoReturn:
        words = f"Job {self.id} holds a connection to the grid, so it cannot be pickled or copied."
        raise InputError(words, next_step="Keep `job.id`, and use `grid.job(id)` where you need the job.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, {self.name!r}, {self.status.words})"


async def read_job(connection: Connection, job_id: object, retries: Retries | None = None) -> AsyncJob:
    """Read a job from the chain. Raises NotFound, and InputError if `job_id` is no number of a job."""
    job = AsyncJob(connection, await connection.reads.job(job_number(job_id)), retries=retries)
    return await job._with_details()
