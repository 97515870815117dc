"""Shows a job live: states, remarks of the grid, output, and at the end the bill."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepgrid.chain.history import Transition
from deepgrid.cli.bill import show_bill
from deepgrid.cli.screen import Screen
from deepgrid.cli.tail import follow_log
from deepgrid.client.display.story import ClusterNames, tell
from deepgrid.customer.session import CustomerSession
from deepgrid.errors import ChainError, GridError
from deepgrid.lifecycle.job import Job

T = TypeVar("T")

POLL_S = 0.5
REMARKS_POLL_S = 1.0
OUTAGE_POLL_S = 2.0
PATIENCE_S = 3.0  # a remark is shown when output is late for longer
LATE_OUTPUT_S = 45.0  # later output is left out; the service closes a log 30 s after its job


async def watch(session: CustomerSession, job_id: int, screen: Screen) -> Job:
    """Show the job until it is over, with its whole output and the bill. Returns the final job.

    If a node or service does not answer, this is shown once, and polling continues.
    """
    watcher = Watcher(session, job_id, screen)
    output = asyncio.create_task(watcher.show_output())
    remarks = asyncio.create_task(watcher.keep_showing_remarks())
    try:
        job = await watcher.show_states()
        if not (await asyncio.wait({output}, timeout=PATIENCE_S))[0]:
            screen.remark("The job is over; waiting for the rest of its output.")
            await asyncio.wait({output}, timeout=LATE_OUTPUT_S)
    finally:
        for task in (output, remarks):
            task.cancel()
        await asyncio.gather(output, remarks, return_exceptions=True)
    await watcher.show_end(job)
    return job


class Watcher:
    """Shows the news of one job. It remembers what was shown."""

    def __init__(self, session: CustomerSession, job_id: int, screen: Screen) -> None:
        self._chain = session.chain
        self._session = session
        self._job_id = job_id
        self._screen = screen
        self._names = ClusterNames(session.chain)
        self._showing = asyncio.Lock()
        self._transitions_shown = 0
        self._remarks_shown = 0

    async def show_states(self) -> Job:
        """Show each state until the job is over. `show_end` shows the final state."""
        seen: Job | None = None
        while True:
            job = await self._answered(lambda: self._chain.job(self._job_id))
            if seen is None or (seen.status, seen.assigned_at) != (job.status, job.assigned_at):
                await self._show_new_states(job)
            if job.has_cancel_request and job.status.hot and not (seen and seen.has_cancel_request):
                self._screen.remark("cancellation was requested", job.cancel_requested_at)
            if job.status.cold:
                return job
            seen = job
            await asyncio.sleep(POLL_S)

    async def keep_showing_remarks(self) -> None:
        """Show new remarks of the meta-scheduler and of clusters."""
        while True:
            await self._show_new_remarks()
            await asyncio.sleep(REMARKS_POLL_S)

    async def show_output(self) -> None:
        """Show the job's output until its end."""
        try:
            async for lines in follow_log(self._session, self._job_id, self._screen.remark):
                self._screen.output(lines)
        except GridError as error:
            self._screen.remark(f"The job's output cannot be shown: {error}")

    async def show_end(self, job: Job) -> None:
        """Show the last remarks, the final state and the bill."""
        await self._show_new_remarks()
        history = await self._answered(lambda: self._chain.history(self._job_id))
        settlement = await self._answered(lambda: self._chain.settlement(self._job_id))
        await self._show(history, job)
        if settlement is not None:
            show_bill(self._screen, job, settlement, history)

    async def _show_new_states(self, job: Job) -> None:
        async with self._showing:
            history = await self._answered(lambda: self._chain.history(self._job_id))
            await self._show([step for step in history if step.after.hot], job)

    async def _show(self, history: list[Transition], job: Job) -> None:
        """Show the new part of `history`."""
        cluster = await self._answered(lambda: self._names.of(job.provider))
        for step, what in tell(history, job, cluster)[self._transitions_shown :]:
            self._screen.state(step.at, step.after, what)
        self._transitions_shown = len(history)

    async def _show_new_remarks(self) -> None:
        try:
            notices = await self._session.services.notices(self._job_id)
        except GridError:
            return  # `output` reports that the service does not answer
        if len(notices) > self._remarks_shown:  # the state comes before its remarks
            await self._show_new_states(await self._answered(lambda: self._chain.job(self._job_id)))
        for notice in notices[self._remarks_shown :]:
            self._screen.remark(f"{notice.kind}: {notice.text}", notice.at)
        self._remarks_shown = len(notices)

    async def _answered(self, question: Callable[[], Awaitable[T]]) -> T:
        """Call the chain, and retry until its node answers."""
        silent = False
        while True:
            try:
                return await question()
            except ChainError as error:
                if not error.transient:
                    raise
                if not silent:
                    self._screen.remark(f"waiting for the chain: {error.message}")
                silent = True
            await asyncio.sleep(OUTAGE_POLL_S)
