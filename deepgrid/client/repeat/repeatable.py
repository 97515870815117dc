"""A job that can be run again: its file, tags and note."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Self, SupportsIndex

from deepgrid.client.engine.submission import place, submit
from deepgrid.client.job_output import JobLog
from deepgrid.client.job_values import Credits, Duration, credits_of
from deepgrid.client.order import Order, Terms, order_of
from deepgrid.client.repeat.deposit import Deposit, minutes_of, order_for, with_deposit
from deepgrid.client.repeat.job_files import JobFile, read_job_file, terms_again, workflow_of
from deepgrid.client.repeat.marks import Tags, mark_of
from deepgrid.client.repeat.retries import Retries
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.lifecycle.ends import was_not_the_programs

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.lifecycle.job import Job

logger = logging.getLogger("deepgrid.client")


class RepeatableJob(JobLog, ABC):
    """The file, tags and note of a job. It is a part of `AsyncJob`."""

    def __init__(self, connection: Connection, job: Job) -> None:
        self._connection = connection
        self._job = job

        self._retries: Retries | None = None
        self._is_cached = False

    @property
    def cached(self) -> bool:
        """Whether `submit(cache=True)` found this job in place of a new one, so that nothing was locked."""
        return self._is_cached

    @property
    def retries_left(self) -> int:
        """How often `retries` may still run the job again; 0 once it needs no retry."""
        final = self._job.status.cold and not was_not_the_programs(self._job.status, self._job.last_error)
        return 0 if self._retries is None or final else self._retries.left

    @abstractmethod
    def _update(self, job: Job, cluster: str) -> None: ...

    @abstractmethod
    async def _with_details(self) -> Self: ...

    async def _run_again(self) -> bool:
        """Submit the job again and become the new job, if retries are left and its program did not cause the failure.

        Returns whether the job is not over now. Raises what `AsyncGrid.submit` raises.
        """
        if (retries := self._retries) is None:
            return False
        async with retries.deciding:
            failed = self._job
            if not retries.left or not was_not_the_programs(failed.status, failed.last_error):
                return failed.status.hot
            logger.warning("job %d failed, running it again: %s", failed.id, failed.last_error)
            job_id, self._is_cached = await place(
                self._connection,
                order_again(failed, retries.workflow),
                approve=retries.approve,
                quote=None,
                key=retries.next_key,
                mark=mark_of(retries.tags, retries.note),
                cache=retries.cache,
            )
            new = await self._connection.reads_forever.job(job_id)  # an error here would repeat it twice
            retries.left -= 1
            retries.earlier.append(failed.id)
            self._update(new, "")
            return True

    async def file(self) -> JobFile:
        """Return the workflow file of an own job, with its tags and note. Secrets in it are masked.

        Returns:
            The file. Modules in it are resolved, and comments are gone.

        Raises:
            NotFound: The job belongs to another customer, or its file is no longer kept.
            ServiceError: The services do not answer.
        """
        return await read_job_file(self._connection, self._job)

    async def again(
        self,
        workflow: Source | Workflow | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        credits: Credits | None = None,
        time: Duration | None = None,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        name: str | None = None,
        tags: Tags | None = None,
        note: str | None = None,
        approve: bool = True,
        key: str | None = None,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
    ) -> Self:
        """Submit the job again, with the terms of the earlier job.

        Args:
            workflow: An edited workflow. The default is the kept file of the job.
            secrets: Values of the masked secrets in the kept file, keyed by their paths as `file` lists them.
            credits: Credits to lock. The default is the amount that the earlier job locked.
            time: Instead of credits: how long the job may run, such as `"4h"`.
            min_time: Time that the credits must buy at the cluster. The default is `time`, or the earlier job's minimum
                time.
            max_price: Maximum credits per minute. The default is the ceiling of the earlier job.
            name: Name of the job. The default is the earlier name.
            tags: Tags of the job. The default is the earlier tags.
            note: Note on the job. The default is the earlier note.
            approve: Raise an allowance that is too low, to exactly the credits.
            key: Idempotency key, as for `submit`.
            after: A job, or its number, that must finish first. The default is the earlier job's wish, if no cluster
                had it.
            after_any: A job that must end first, in any way.

        Returns:
            The new job.

        Raises:
            NotFound: The file is not kept any more, or is another customer's.
            InputError: A masked secret is missing, or an argument is wrong.
            GridError: As `submit` raises.
        """
        kept = await read_job_file(self._connection, self._job) if None in (workflow, tags, note) else JobFile("")
        read = None if workflow is None else await read_workflow(workflow)
        order = order_again(self._job, read or workflow_of(kept, self._job.name, secrets), name, max_price)
        if (least := time if min_time is None else min_time) is not None:
            order = order.with_least(minutes_of(least))
        order = replace(order, terms=order.terms.following(after, after_any))
        if credits is None and time is None:
            credits = credits_of(self._job.locked_wei)
        order = await with_deposit(self._connection, order, credits, time)
        mark = mark_of(kept.tags if tags is None else tags, kept.note if note is None else note)
        job_id = await submit(self._connection, order, approve=approve, key=key, mark=mark)
        return await type(self)(self._connection, await self._connection.reads.job(job_id))._with_details()

    async def deposit_again(
        self, workflow: Source | Workflow, time: Duration, *, max_price: Credits | None = None
    ) -> Deposit:
        """Return what the job would lock to run again for a time, and its cost at each cluster. Nothing is sent.

        Args:
            workflow: Its workflow.
            time: How long the job may run, such as `"4h"`.
            max_price: Maximum credits per minute. The default is the ceiling of the earlier job.

        Returns:
            The deposit.

        Raises:
            InputError: No cluster can take the job now, or an argument is wrong.
            ChainError: The node does not answer.
        """
        order = order_again(self._job, await read_workflow(workflow), max_price=max_price).with_least(1)
        return (await order_for(self._connection, order, minutes_of(time)))[1]

    async def tag(self, tags: Tags | None = None, *, note: str | None = None) -> None:
        """Replace the tags of an own job, or its note.

        Args:
            tags: The tags, such as `{"project": "wing"}` or `["project=wing"]`. None leaves them as they are.
            note: The note. None leaves it as it is.

        Raises:
            NotFound: It is another customer's job, or it is not kept any more.
            InputError: A tag or the note is too long.
            ServiceError: The services do not answer.
        """
        from deepgrid.services.kept_messages import JobMark, Mark

        connection = self._connection
        kept = await connection.patiently(lambda: connection.session.services.kept_file(self.id))
        mark = mark_of(kept.mark.tags if tags is None else tags, kept.mark.note if note is None else note) or Mark()
        changed = JobMark(
            definition_hash=self._job.definition.definition_hash, tags=mark.tags, note=mark.note, sweep=kept.mark.sweep
        )
        await connection.patiently(lambda: connection.session.services.write_marks([changed]))


def order_again(job: Job, workflow: Workflow, name: str | None = None, max_price: Credits | None = None) -> Order:
    """Return the order that repeats a job, with its deposit. Raises InputError."""
    terms = terms_again(job)
    if max_price is not None:
        terms = replace(terms, max_rate_wei=Terms.of(max_price=max_price).max_rate_wei)
    if not job.name and name is None:
        name = "job"
    return order_of(workflow, job.locked_wei, job.name if name is None else name, terms)


async def run_again(job: RepeatableJob) -> bool:
    """Run a job again that failed, if its retries allow it. Returns whether it is not over now."""
    return await job._run_again()
