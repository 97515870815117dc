"""The table of jobs: where the app starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from deepgrid.errors import GridError
from deepgrid.plain_text import plain
from deepgrid.tui.screens.frame import Plain
from deepgrid.tui.screens.job_actions import JobActions
from deepgrid.tui.widgets.table import Cell, Table
from deepgrid.tui.widgets.text_pane import SideText
from deepgrid.tui.words import age, amount, short_address

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.job_values import Remark


class JobsScreen(JobActions):
    """All jobs of the customer, newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_log", "log of the job", show=False),
        Binding("v", "open_job", "life and bill of the job", show=False),
        Binding("s", "send('submit')", "submit a job", show=False),
        Binding("p", "clusters", "clusters and prices", show=False),
        Binding("w", "sweeps", "sweeps", show=False),
        Binding("ctrl+t", "send('transfer')", "transfer credits", show=False),
        Binding("a", "send('allowance')", "set the allowance", show=False),
        Binding("slash", "filter", "filter: name, state, cluster, tag, sweep", show=False, priority=True),
    ]
    HEAD = "dps"
    KEYS = "enter log  v job  l peek  s submit  t top up  c cancel  p clusters  ? keys  q"

    def __init__(self) -> None:
        super().__init__()
        self._filter = ""
        self._shown: Sequence[int] = ()
        self._remarks: dict[int, list[Remark]] = {}
        self._asked: tuple[int, object] | None = None

    def body(self) -> Iterable[Widget]:
        from deepgrid.tui.details import COLUMNS

        with Horizontal(id="body"):
            yield Table(COLUMNS, self._cells, id="table")
            yield SideText(id="side")

    def below(self) -> Iterable[Widget]:
        yield Plain(id="remark")
        yield Input(placeholder="part of id, name, state, cluster, tag or sweep", id="filter", disabled=True)

    def prepare(self) -> None:
        self.query_one("#filter").display = False
        super().prepare()
        self.query_one(Table).focus()

    def on_resize(self) -> None:
        self.show_news()

    # -- drawing -----------------------------------------------------------------------------

    def draw(self) -> None:
        super().draw()
        live = self.live
        self._show_head()
        if live is None or live.ids is None:
            self.instead(self.missing("Jobs"))
            return
        chosen = self.job_id
        self._shown = self._filtered(live.ids)
        if self.grid_app.submitted in self._shown:
            chosen, self.grid_app.submitted = self.grid_app.submitted, None
        self.instead("" if self._shown else self._nothing())
        table = self.query_one(Table)
        table.show(len(self._shown), self._shown.index(chosen) if chosen in self._shown else None, stale=self.stale)
        self._want()
        self._show_chosen()

    def _filtered(self, ids: Sequence[int]) -> Sequence[int]:
        assert self.live is not None
        if not self._filter:
            return ids
        from deepgrid.tui.details import matches

        marks = self.live.marks
        jobs = [self.live.jobs[job_id] for job_id in ids if job_id in self.live.jobs]
        texts = (marks.get(job.on_chain.definition.definition_hash, "") for job in jobs)
        return [job.id for job, text in zip(jobs, texts, strict=True) if matches(job, self._filter, text)]

    def _nothing(self) -> str:
        if self._filter:
            return f"No job matches '{plain(self._filter)}'.\nPress / to change the filter, esc there to remove it."
        return "You have no jobs yet.\nPress s to submit one, or p to see clusters and prices."

    def _show_head(self) -> None:
        live = self.live
        account = live.account if live else None
        if live is None:
            return
        who = short_address(live.overview.customer) + (" read-only" if self.grid_app.read_only else "")
        if account is None:
            self.head(who)
            return
        block_age = age(live.now() - account.at.timestamp())
        text = f"{who}  {amount(account.credits)} credits"
        if not self._filter:  # which needs the room
            text += f"  allowance {amount(account.allowance)}  gas {amount(account.gas)}  block {block_age}"
        else:
            read, total = sum(job_id in live.jobs for job_id in live.ids or ()), len(live.ids or ())
            text += f"  [{plain(self._filter)}: {len(self._shown)} of {read if read < total else total}]"
        self.head(Content(text) if not self.stale else Content.styled(text, "dim"))

    def _cells(self, row: int) -> Sequence[Cell] | None:
        from deepgrid.tui.details import cells

        assert self.live is not None
        job = self.live.jobs.get(self._shown[row])
        return None if job is None else cells(job, self.live.now())

    def _want(self) -> None:
        if self.live is not None:
            self.live.want(self._shown[row] for row in self.query_one(Table).visible_rows)

    @on(Table.Moved)
    def _moved(self) -> None:
        self._want()
        self._show_chosen()

    # -- the chosen job ----------------------------------------------------------------------

    @property
    def job_id(self) -> int | None:
        cursor = self.query_one(Table).cursor
        return self._shown[cursor] if cursor < len(self._shown) else None

    @property
    def job(self) -> AsyncJob | None:
        return self.live.jobs.get(self.job_id) if self.live is not None and self.job_id is not None else None

    def _show_chosen(self) -> None:
        from deepgrid.tui.details import bill_lines, facts, last_remark

        job, side = self.job, self.query_one("#side", SideText)
        if job is None or self.live is None:
            self.query_one("#remark", Plain).say("")
            side.show([])
            return
        remarks = self._remarks.get(job.id, [])
        words = f"{job.id}: {last_remark(job, remarks)}"
        self.query_one("#remark", Plain).say(Content.styled(plain(words), "dim") if self.stale else words)
        side.show([*facts(job, self.live.now()), *bill_lines(job)], stale=self.stale)
        if not job.over and self._asked != (job.id, self.live.account and self.live.account.block):
            self._asked = (job.id, self.live.account and self.live.account.block)
            self.run_worker(self._read_remarks(job.id), group="remarks", exclusive=True)

    async def _read_remarks(self, job_id: int) -> None:
        assert self.live is not None
        try:
            self._remarks[job_id] = await self.live.overview.remarks(job_id)
        except GridError:
            return  # what the chain says is shown without them
        if self.alive:
            self._show_chosen()

    # -- keys --------------------------------------------------------------------------------

    def action_leave(self) -> None:
        field = self.query_one("#filter", Input)
        if field.display:  # removes the filter first
            field.value, field.display, field.disabled = "", False, True
            self.query_one(Table).focus()
        else:
            self.grid_app.leave(self.app.exit)

    def action_filter(self) -> None:
        self.ask_in(self.query_one("#filter", Input))
        if self.live is not None:
            self.run_worker(self._read_marks(), group="marks", exclusive=True)

    async def _read_marks(self) -> None:
        try:
            if self.live is not None:
                await self.live.read_marks()
        except GridError:
            return  # the filter finds what the chain says

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self._filter = event.value.strip()
        self.show_news()
        if self._filter and self.live is not None:
            self.run_worker(self._read_all(), group="filter", exclusive=True)

    async def _read_all(self) -> None:
        try:
            if self.live is not None:
                await self.live.read_all()
        except GridError:
            return  # the live data reports the outage

    @on(Input.Submitted, "#filter")
    def _filter_done(self) -> None:
        field = self.query_one("#filter", Input)
        field.disabled, field.display = True, bool(self._filter)
        self.query_one(Table).focus()

    def action_clusters(self) -> None:
        self.grid_app.open_screen("clusters")

    def action_sweeps(self) -> None:
        if self.may_send():
            self.grid_app.open_screen("sweeps")

    def action_send(self, form: str) -> None:
        """Open a form that sends a transaction."""
        if self.live is not None and self.may_send():
            self.grid_app.open_screen(form)
