"""One job: what it is, why it waits, its life with remarks, its bill."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from deepgrid.errors import GridError
from deepgrid.plain_text import plain
from deepgrid.tui.screens.job_actions import JobActions
from deepgrid.tui.widgets.text_pane import Line, SideText, TextPane, heading, pair, plain_line

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.job_values import Remark, Step

TAIL_BYTES = 16384


class JobScreen(JobActions):
    """Life and bill of a job. A wide screen also shows the end of its log."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open_log", "log of the job", show=False)]
    KEYS = "enter log  l peek  o files  t top up  c cancel  r run again  ? keys  q"

    def __init__(self, job: AsyncJob) -> None:
        super().__init__()
        self._job = job
        self._steps: list[Step] | None = None
        self._remarks: list[Remark] = []
        self._failure = ""
        self._read_at: object = None

    @property
    def job(self) -> AsyncJob:
        return self.live.jobs.get(self._job.id, self._job) if self.live else self._job

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="body"):
            yield TextPane(id="life")
            yield SideText(id="side")

    def prepare(self) -> None:
        super().prepare()
        self.query_one("#life").focus()

    def draw(self) -> None:
        super().draw()
        job, live = self.job, self.live
        self.head(f"Job {job.id} ({plain(job.name)})")
        if live is None:
            return
        version = (job.on_chain, live.account and live.account.block if not job.over else None)
        if version != self._read_at and not live.outage:
            self._read_at = version
            self.run_worker(self._read(), group="life", exclusive=True)
        self._show()

    async def _read(self) -> None:
        assert self.live is not None
        try:
            self._steps = await self.job.history
            self._remarks = await self.live.overview.remarks(self.job.id)
            self._failure = ""
        except GridError as error:
            self._failure = str(error)
        if not self.alive:
            return
        self._show()
        if self.size.width >= 120:
            await self._read_tail()

    async def _read_tail(self) -> None:
        tail = await self.read_last_lines(self.job.id, TAIL_BYTES)
        if self.alive:
            self.query_one("#side", SideText).show([heading("log"), *(tail or [plain_line("no output yet")])])

    def _show(self) -> None:
        from deepgrid.tui.details import bill_lines, facts, life_lines

        job, live = self.job, self.live
        if self._steps is None and not self._failure:
            self.instead(self.missing("The job"))
            return
        self.instead("")
        lines: list[Line] = [*facts(job, live.now() if live else 0)]
        if not job.over and (why := self._why()):
            lines.insert(1, pair("waits for", plain(why)))
        if job.over and job.outcome:
            lines.insert(1, pair("outcome", plain(job.outcome)))
        lines += bill_lines(job)
        if self._failure:
            lines += [plain_line(""), plain_line(f"Its life cannot be read: {self._failure}", "red")]
        lines += life_lines(self._steps or [], self._remarks)
        self.query_one("#life", TextPane).show(lines, stale=self.stale)

    def _why(self) -> str:
        from deepgrid.lifecycle.states import JobStatus

        if self.job.status is JobStatus.PENDING and self._remarks:
            return self._remarks[-1].text
        return self.job.waits_for
