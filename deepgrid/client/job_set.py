"""The jobs of a parameter sweep, as `AsyncGrid.map` returns them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from deepgrid.client.display.data_frames import JOB, frame_of
from deepgrid.client.display.html import jobs_html
from deepgrid.client.display.progress import progress_bar
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.earlier_job import check_earlier
from deepgrid.client.engine.idempotency import random_key
from deepgrid.client.errors import WaitTimeout, limit_words, note_interruption
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import Duration, seconds_of
from deepgrid.client.order import Order
from deepgrid.client.settings import wait_until_set
from deepgrid.client.sweep.driver import Sweep, SweepLimits
from deepgrid.client.sweep.plan import Entry, Plan
from deepgrid.client.sweep.summary import Summary, Unsubmitted, summary_of
from deepgrid.errors import ContractError, InputError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    import pandas as pd

    from deepgrid.services.kept_messages import Mark

REQUESTED_LOOK_S = 0.2  # a new request sets no event
MAP = "map"  # what idempotency keys of sweeps are for
AGAIN = "Call `map` again with the same key to continue, or look at `dps job list`."


class AsyncJobSet:
    """Jobs with parameters. Some may not be requested yet. `AsyncGrid.map` makes it.

    The jobs are requested in the background, while the grid is open. Iterating over the set gives the jobs that were
    requested so far, in the order of their parameters; `len` counts all.
    """

    def __init__(self, sweep: Sweep, entries: Sequence[Entry], *, progress: bool = True) -> None:
        self._sweep = sweep
        self._entries = entries
        self._progress = progress  # shows a bar while it waits

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AsyncJob]:
        return iter([entry.job for entry in self._entries if entry.job is not None])

    @property
    def ids(self) -> list[int]:
        """Numbers of the jobs that were requested so far, in the order of their parameters."""
        return [job.id for job in self]

    @property
    def sweep_id(self) -> str:
        """Id of the sweep, by which `AsyncGrid.sweep` and `dps sweep` find it again."""
        return self._sweep.plan.sweep_id

    @property
    def refused(self) -> list[Unsubmitted]:
        """Placeholders for the parameter sets that have no job and will get none, in the order of their parameters."""
        return [entry.unsubmitted for entry in self._entries if entry.unsubmitted is not None]

    @property
    def unnoted(self) -> int:
        """Number of jobs of the sweep whose place, tags and note the services do not keep, because they failed."""
        return self._sweep.unnoted

    async def requested(self) -> Self:
        """Wait until all jobs were requested, or were refused.

        Returns:
            The set itself.

        Raises:
            GridError: No more jobs can be requested, for example for lack of credits.
        """
        while any(entry.job is None and entry.unsubmitted is None for entry in self._entries):
            change = self._sweep.change
            if self._sweep.error is not None:
                raise self._sweep.error
            await wait_until_set(change, REQUESTED_LOOK_S)
        return self

    # -- waiting -----------------------------------------------------------------------------

    async def as_completed(self) -> AsyncIterator[AsyncJob | Unsubmitted]:
        """Yield the jobs, each once it is over. A job that failed is one of them, not an error.

        Yields:
            The jobs in the order in which they end. An `Unsubmitted` represents a parameter set whose definition was
            refused.

        Raises:
            GridError: No more jobs can be requested, for example for lack of credits. All others were yielded before.
        """
        wanted, seen, left = set(self._entries), 0, len(self._entries)
        sweep = self._sweep
        while left:
            change = sweep.change
            while seen < len(sweep.ended):
                entry, seen = sweep.ended[seen], seen + 1
                if entry in wanted:
                    left -= 1
                    yield entry.result
            if left and change is sweep.change:
                if sweep.stuck is not None:
                    raise sweep.stuck
                with note_interruption(f"{left} jobs are not over; those that were requested continue. {AGAIN}"):
                    await change.wait()

    async def results(self) -> list[AsyncJob | Unsubmitted]:
        """Wait until all jobs are over.

        Returns:
            The jobs in the order of their parameters, as `as_completed` yields them.

        Raises:
            GridError: No more jobs can be requested. The others are over.
        """
        with progress_bar(len(self), shown=self._progress) as step:
            async for job in self.as_completed():
                step(job.status is JobStatus.FINISHED)
        return [entry.result for entry in self._entries]

    async def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until all jobs are over.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The set itself.

        Raises:
            WaitTimeout: The time limit is over. The jobs continue.
            GridError: No more jobs can be requested. The others are over.
        """
        try:
            async with asyncio.timeout(seconds_of(timeout)):
                await self.results()
        except TimeoutError:
            left = sum(not entry.over for entry in self._entries)
            raise WaitTimeout(f"{left} of {len(self)} jobs are not over after {limit_words(timeout)}.", self) from None
        return self

    # -- parts of the set --------------------------------------------------------------------

    async def finished(self) -> Self:
        """Return the part of the set that finished successfully so far.

        Returns:
            A set of these jobs.
        """
        return self._part(JobStatus.FINISHED)

    async def failed(self) -> Self:
        """Return the part of the set that is over so far and did not finish, however it ended.

        Returns:
            A set of these jobs.
        """
        return self._part(*(status for status in JobStatus if status.cold and status is not JobStatus.FINISHED))

    def _part(self, *statuses: JobStatus) -> Self:
        part = [entry for entry in self._entries if entry.over and entry.result.status in statuses]
        return type(self)(self._sweep, part, progress=self._progress)

    # -- changing ----------------------------------------------------------------------------

    async def retry(self) -> Self:
        """Run the parameter sets of this set again, with the same limits. `failed().retry()` repeats what failed.

        Under a key it finds the jobs of an earlier call of the same retry.

        Returns:
            The set of the new jobs.

        Raises:
            InputError: Some jobs of this set are not over, or the job before all of them has failed.
        """
        left = sum(not entry.over for entry in self._entries)
        if left:
            raise InputError(f"{left} of {len(self)} jobs are not over.", next_step="Wait for them, or cancel them.")
        old = self._sweep
        if not old.plan.named:
            await check_earlier(old.connection, [old.plan.terms])
        entries = [old.plan.again(entry) for entry in self._entries]
        sweep = Sweep(old.connection, old.plan, entries, old.limits)
        sweep.start()
        return type(self)(sweep, entries, progress=self._progress)

    async def cancel(self) -> Self:
        """Cancel all jobs of the set that are not over, and request no more.

        Returns:
            The set itself. Claimed jobs end a little later.

        Raises:
            ChainError: The node does not answer.
        """
        dropping = self._sweep.drop(self._entries)
        running = [job for job in self if not job.over]
        await self._cancel(running)  # first, because each started minute costs
        await dropping
        await self._cancel([job for job in self if not job.over and job not in running])
        return self

    async def _cancel(self, jobs: Sequence[AsyncJob]) -> None:
        writer = self._sweep.connection.session.writer
        answers = await asyncio.gather(*(writer.cancel_job(job.id) for job in jobs), return_exceptions=True)
        errors = [error for error in answers if isinstance(error, BaseException)]
        for error in errors:
            if not isinstance(error, ContractError):  # which says that the job has ended meanwhile
                raise error

    async def summary(self) -> Summary:
        """Count the jobs by their states now, and their credits.

        Returns:
            The summary. `print` shows it as a table.

        Raises:
            ChainError: The node does not answer.
        """
        hot = {job.id: job for job in self if not job.over}
        connection = self._sweep.connection
        now = await connection.reads.jobs(list(hot)) if hot else []
        newest = {job.id: AsyncJob(connection, job) for job in now}
        return summary_of(None if entry.job is None else newest.get(entry.job.id, entry.job) for entry in self._entries)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per requested job. It needs pandas, which the extra `bills` installs.

        Returns:
            The table, with a column per parameter.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return frame_of(self, JOB, [job.parameters for job in self])

    def _repr_html_(self) -> str:
        return jobs_html(list(self), f"{len(self)} jobs")

    def __repr__(self) -> str:
        over = sum(entry.over for entry in self._entries)
        return f"{type(self).__name__}({len(self)} jobs, {len(self.ids)} requested, {over} over)"


async def start_sweep(
    connection: Connection,
    order: Order,
    parameters: Iterable[Mapping[str, object]],
    limits: SweepLimits,
    key: str | None,
    mark: Mark | None = None,
) -> Sweep:
    """Check the arguments and all definitions, then begin to request jobs. Raises what `AsyncGrid.map` raises."""
    for name, value in (("at_once", limits.at_once), ("pack", limits.pack)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1.")
    if limits.most_wei is not None and limits.most_wei < order.locked_wei:
        raise InputError("The budget `most` is smaller than the credits of one job.")
    if limits.most_wei is not None and order.delegate_spending:
        raise InputError(
            "The budget `most` does not hold with delegate_spending, because top-ups lock further credits.",
            next_step="Leave one of them out.",
        )
    named = connection.idempotency_key(MAP, random_key() if key is None else key)
    plan = Plan(order, limits.pack, named, named=key is not None, mark=mark)
    if not plan.named:  # else jobs may exist already
        await check_earlier(connection, [order.terms])
    entries = await asyncio.to_thread(plan.entries, parameters)
    constants = await connection.reads.constants()
    purse, reads = connection.session.purse, connection.reads
    purse.check_minimum(order.locked_wei, constants.minimum_wei)
    if not limits.approve:
        customer = connection.session.address
        purse.check(order.locked_wei, await reads.balance(customer), await reads.allowance(customer))
    await connection.patiently(lambda: plan.set_ceiling(connection.session))
    sweep = Sweep(connection, plan, entries, limits)
    sweep.start()
    return sweep
