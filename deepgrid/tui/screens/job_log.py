"""The output of a job, live or stored, over the whole width."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from deepgrid.client.display.text import COLOUR
from deepgrid.errors import GridError
from deepgrid.plain_text import plain
from deepgrid.tui.screens.job_actions import JobActions
from deepgrid.tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob

DRAW_S = 0.1
POLL_S = 2.0
LINES_AT_ONCE = 500  # then keys are answered
TAIL_LINES = 500  # are read first, because users want to see the end


class LogScreen(JobActions):
    """A job's output. It follows the end until the user scrolls up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "ask('search')", "search", show=False, priority=True),
        Binding("n", "again(False)", "next match", show=False),
        Binding("N", "again(True)", "previous match", show=False),
        Binding("t", "times", "times of arrival", show=False),
        Binding("w", "wrap", "wrap long lines", show=False),
        Binding("s", "ask('save')", "save to a file", show=False, priority=True),
        Binding("left", "aside(-20)", "left", show=False),
        Binding("right", "aside(20)", "right", show=False),
        Binding("v", "open_job", "life and bill of the job", show=False),
        Binding("y", "copy_lines", "copy the visible lines", show=False),
    ]
    KEYS = "/ search  n N next  G follow  t times  w wrap  s save  v job  ? keys  q"
    QUESTIONS: ClassVar[dict[str, str]] = {"search": "search for", "save": "file to write"}

    def __init__(self, job: AsyncJob) -> None:
        super().__init__()
        self._job = job
        self._needle = ""
        self._asks = ""
        self._dirty = False
        self._ended = False
        self._cut = False  # whether there may be older lines that were not read
        self._failure = ""

    @property
    def job(self) -> AsyncJob:
        return self.live.jobs.get(self._job.id, self._job) if self.live else self._job

    def body(self) -> Iterable[Widget]:
        yield LogView(id="body")

    def compose(self) -> ComposeResult:
        *parts, keys = super().compose()
        yield from parts
        yield Input(id="ask")
        yield keys

    def prepare(self) -> None:
        self.query_one("#ask").display = False
        super().prepare()
        self._view.focus()
        self.set_interval(DRAW_S, self._draw_lines)
        self.run_worker(self._read(), group="log", exclusive=True)

    @property
    def _view(self) -> LogView:
        return self.query_one(LogView)

    # -- reading -----------------------------------------------------------------------------

    async def _read(self, tail: int | None = TAIL_LINES) -> None:
        """Show the output from its last `tail` lines on, or all of it, until it is complete."""
        while True:
            try:
                await self._follow(tail)
            except GridError as error:
                if error.transient:  # only before the first line: what follows is retried by the client
                    self._say(f"The job's output cannot be read at the moment: {error.message}")
                    await asyncio.sleep(POLL_S)
                    continue
                self._failure = str(error)
            break
        self._ended = True
        self._draw_lines()
        self.show_news()

    async def _follow(self, tail: int | None) -> None:
        view, claim, first, count = self._view, 0, None, 0
        async for line in self._job.logs(follow=True, tail=tail, say=self._say):
            if line.claim != claim:
                claim, first, count = line.claim, line.arrived, 0
                view.clear()
            view.add([line.text], (line.written or line.arrived).timestamp())
            count += 1
            if line.arrived == first:  # one of those that were stored
                self._cut = claim == 1 and count == tail
            self._dirty = True
            if count % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)

    @on(LogView.AtTop)
    def _read_all(self) -> None:
        if self._cut:
            self._cut = self._ended = False
            self.run_worker(self._read(None), group="log", exclusive=True)

    def _say(self, words: str) -> None:
        self.tell(words, wrong=True)

    def _draw_lines(self) -> None:
        if self._dirty and self.alive:
            self._dirty = False
            self._view.draw()
            self.show_news()

    def draw(self) -> None:
        super().draw()
        view, job = self._view, self.job
        count = view.dropped + len(view.lines)
        how = "complete" if self._ended else "following" if view.follows else "paused, G follows"
        lines = f"last {count} lines, g reads all" if self._cut else f"{count} lines"
        self.head(f"Log of job {job.id} ({plain(job.name)}), {job.status.words}: {lines}, {how}")
        if self._failure:
            self.instead(f"The output cannot be shown.\n{self._failure}")
        else:
            self.instead("" if count else self._nothing())

    def _nothing(self) -> str:
        """Return why there are no lines."""
        if self._ended:
            return "The job has no stored output."
        if self.stale or self.job.over:
            return self.missing("The output")
        return "No output yet. New lines appear here."

    # -- keys --------------------------------------------------------------------------------

    def action_ask(self, what: str) -> None:
        field = self.query_one("#ask", Input)
        self._asks = what
        field.placeholder = self.QUESTIONS[what]
        field.value = "" if what == "search" else f"job-{self.job.id}.log"
        self.ask_in(field)

    @on(Input.Submitted, "#ask")
    def _answered(self, event: Input.Submitted) -> None:
        self._close_question()
        if self._asks == "search" and event.value:
            self._needle = event.value
            self._search(here=True)
        elif self._asks == "save" and event.value:
            self.run_worker(self._save(Path(event.value).expanduser()), group="save", exclusive=True)

    def _close_question(self) -> None:
        self.query_one("#ask").display = False
        self._view.focus()

    def action_leave(self) -> None:
        if self.query_one("#ask").display:
            self._close_question()
        else:
            super().action_leave()

    def action_again(self, backwards: bool) -> None:
        if self._needle:
            self._search(backwards=backwards)

    def _search(self, *, backwards: bool = False, here: bool = False) -> None:
        found = self._view.search(self._needle, backwards=backwards, here=here)
        where = " among the last ones; g reads all" if self._cut else ""
        self.tell("" if found else f"No line contains '{plain(self._needle)}'{where}.", wrong=not found)
        self.show_news()

    def action_times(self) -> None:
        self._view.switch(timed=not self._view.timed)

    def action_wrap(self) -> None:
        self._view.switch(wraps=not self._view.wraps)
        self.tell("Long lines wrap." if self._view.wraps else "Long lines are cut; left and right show the rest.")

    def action_aside(self, columns: int) -> None:
        self._view.aside(columns)

    def action_copy_lines(self) -> None:
        view = self._view
        lines = view.lines[view.top_line :][: view.page_rows]
        self.app.copy_to_clipboard("\n".join(COLOUR.sub("", line) for line in lines))
        self.tell(f"Copied {len(lines)} lines.")

    async def _save(self, path: Path) -> None:
        written = 0
        try:
            with await asyncio.to_thread(path.open, "x", encoding="utf-8") as file:
                async for line in self._job.logs():
                    file.write(COLOUR.sub("", line.text) + "\n")
                    written += 1
                    if written % LINES_AT_ONCE == 0:
                        await asyncio.sleep(0)
        except FileExistsError:
            self.tell(f"{path} exists; name another file.", wrong=True)
        except OSError as error:
            self.tell(f"{path} cannot be written: {error.strerror}.", wrong=True)
        except GridError as error:
            self.tell(f"Saved {written} lines to {path}, then: {error}", wrong=True)
        else:
            self.tell(f"Saved {written} lines to {path}.")
