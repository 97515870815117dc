"""Actions on a job: the same keys in the table of jobs, on the job's screen and in its log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from deepgrid.client.display.text import COLOUR
from deepgrid.errors import GridError
from deepgrid.plain_text import plain
from deepgrid.tui.details import cancelled_words, why_not_cancel, why_not_top_up
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.questions import Pane, Question
from deepgrid.tui.widgets.text_pane import Line, plain_line

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob

PEEK_BYTES, PEEK_LINES = 8192, 18
PEEK_AGAIN_S = 2.0


class JobActions(GridScreen):
    """A screen with a chosen job: the job that it was opened for, or the selected row of a table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "peek", "last lines of the job", show=False),
        Binding("o", "open_files", "files that the job left", show=False),
        Binding("r", "run_again", "run the job again", show=False),
        Binding("t", "top_up", "top up the job", show=False),
        Binding("c", "cancel", "cancel the job", show=False),
        Binding("y", "copy", "copy the job's number", show=False),
    ]

    @property
    def job(self) -> AsyncJob | None:
        """The chosen job; None if there is none, or while it is being read."""
        raise NotImplementedError

    def may_send(self) -> bool:
        """Return whether there is a key. Shows a message if there is none."""
        if self.grid_app.read_only:
            self.tell("This was opened read-only, without a key.", wrong=True)
        return not self.grid_app.read_only

    # -- looking -----------------------------------------------------------------------------

    def action_open_log(self) -> None:
        if self.job is not None:
            self.grid_app.open_screen("log", self.job)

    def action_open_job(self) -> None:
        if self.job is not None:
            self.grid_app.open_screen("job", self.job)

    def action_open_files(self) -> None:
        if self.job is not None and self.may_send():
            self.grid_app.open_screen("files", self.job)

    def action_peek(self) -> None:
        if self.job is not None:
            pane = Pane(f"Last lines of job {self.job.id} ({plain(self.job.name)})", [plain_line("Reading ...")])
            self.app.push_screen(pane)
            self.run_worker(self._peek(self.job.id, pane), group="peek", exclusive=True)

    async def _peek(self, job_id: int, pane: Pane) -> None:
        """Show the last lines, and again while the job runs and the pane is open."""
        while True:
            over = self.live is None or (job := self.live.jobs.get(job_id)) is None or job.over
            lines = await self.read_last_lines(job_id, PEEK_BYTES)
            if not pane.is_attached:
                return
            pane.show(lines or [plain_line("The job wrote nothing." if over else "There is no output yet.")])
            if over:
                return
            await asyncio.sleep(PEEK_AGAIN_S)

    async def read_last_lines(self, job_id: int, size: int) -> list[Line]:
        """Return the last lines of a job's output, cleaned, without colours; or why it cannot be read."""
        from deepgrid.client.display.text import LogLines

        assert self.live is not None
        try:
            output = await self.live.overview.output_end(job_id, size)
        except GridError as error:
            return [plain_line(str(error))]
        lines = LogLines().feed(output, final=True)[-PEEK_LINES:]
        return [plain_line(plain(COLOUR.sub("", line))) for line in lines]

    def action_copy(self) -> None:
        if self.job is not None:
            self.app.copy_to_clipboard(str(self.job.id))
            self.tell(f"Copied {self.job.id}.")

    # -- changing ----------------------------------------------------------------------------

    def action_top_up(self) -> None:
        job = self.job
        if job is None or not self.may_send():
            return
        if why := why_not_top_up(job):
            self.tell(f"Job {job.id} cannot be topped up: {why}.", wrong=True)
            return
        self.grid_app.open_screen("top up", job)

    def action_run_again(self) -> None:
        if self.job is not None and self.may_send():
            self.grid_app.open_screen("submit", self.job)

    def action_cancel(self) -> None:
        job, live = self.job, self.live
        if job is None or live is None or live.terms is None or not self.may_send():
            return
        chain_s = live.account.at.timestamp() if live.account else live.now()
        if why := why_not_cancel(job, live.terms.answer_minutes, live.terms.cancellation_minutes, chain_s):
            self.tell(f"Job {job.id} cannot be cancelled: {why}.", wrong=True)
            return
        fee = f"at least {live.terms.cancellation_minutes} minutes are billed"
        if job.on_chain.has_cancel_request:
            billed = "what its cluster can no longer bill is returned"
        else:
            billed = fee if job.status.claimed else f"nothing is billed, unless a cluster claims it first: then {fee}"
        question = f"Cancel job {job.id} ({plain(job.name)})? {billed} [y/N]"
        self.app.push_screen(Question(question), lambda yes: self._cancel(job) if yes else None)

    def _cancel(self, job: AsyncJob) -> None:
        async def send() -> str:
            await job.cancel()
            return cancelled_words(job)

        self.grid_app.send(f"the cancellation of job {job.id}", send, self.grid_app.tell_outcome)
