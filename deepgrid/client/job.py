"""A job of the grid, as the client last read it, and what can be done with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Self

from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.client.display.screens import screen_here
from deepgrid.client.display.story import cancel_words
from deepgrid.client.engine.interruption import continues, noted
from deepgrid.client.engine.output import last_lines
from deepgrid.client.engine.watching import show_live
from deepgrid.client.errors import WaitTimeout
from deepgrid.client.job_end import error_of
from deepgrid.client.job_reader import AsyncJobReader
from deepgrid.client.values.amounts import Credits, Duration, seconds_of, wei_of
from deepgrid.client.values.html import job_html
from deepgrid.errors import ChainError, GridError, InputError
from deepgrid.lifecycle.states import JobStatus

LAST_LINES = 20  # of a failed job's output, in its error


class AsyncJob(AsyncJobReader):
    """A job. Its attributes are what the client read last: `refresh`, `wait` and `watch` read it again."""

    _last_transaction = ""

    @property
    def last_transaction(self) -> str:
        """Hash of the last transaction that `cancel` or `top_up` sent; empty before."""
        return self._last_transaction

    # -- waiting -----------------------------------------------------------------------------

    async def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the job is over. Outages of the node only delay it.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The job itself.

        Raises:
            WaitTimeout: The time limit is over. The job continues.
        """
        if self.over:
            return self
        try:
            with noted(continues(self.id)):
                async with asyncio.timeout(seconds_of(timeout)):
                    async for job in self._connection.poller.until([self.id], lambda job: job.status.cold):
                        self._last = replace(self._last, job=job)
        except TimeoutError:
            raise WaitTimeout(f"Job {self.id} is not over after {timeout}.", self) from None
        return await self._with_details()

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
            raise error_of(self, self.on_chain, await self._last_lines())
        return self

    async def watch(self) -> Self:
        """Show the job and its output until it is over: one cell of a notebook is redrawn, elsewhere lines are printed.

        Outages only delay it. Interrupting it ends the view, not the job.

        Returns:
            The job itself.

        Raises:
            ConfigurationError: In a notebook, the extra `notebook` is missing.
        """
        await show_live(self._connection, self, self.events(), screen_here())
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
        """What follows the cancellation of the job, in words.

        Returns:
            How many credits came back, or what the cluster does next and by when.

        Raises:
            ChainError: The node does not answer.
        """
        return cancel_words(self.on_chain, await self._connection.patiently(self._connection.chain.constants))

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
            with noted(f"Job {self.id} may have been topped up; look at `dps job get {self.id}` before you repeat it."):
                receipt = await self._connection.session.top_up(self.id, wei_of(credits), approve=approve)
        return await self._changed_by(receipt)

    async def _changed_by(self, receipt: Receipt) -> Self:
        """Read the job after its transaction. Whatever fails then names the transaction."""
        self._last_transaction = receipt.tx_hash
        done = f"Transaction {receipt.tx_hash} changed job {self.id}"
        with noted(f"{done}."):
            try:
                return await self.refresh()
            except GridError as error:
                raise ChainError(
                    f"{done}, which cannot be read: {error.message}", transient=False,
                    next_step=f"Do not send it again. See the job with `dps job get {self.id}`.",
                ) from error  # fmt: skip

    async def _last_lines(self) -> tuple[str, ...]:
        if self.status is not JobStatus.FAILED or not self._connection.has_key:
            return ()
        return await last_lines(self._connection, self.id, LAST_LINES, self._connection.settings.last_lines_s)

    def _repr_html_(self) -> str:
        return job_html(self)
