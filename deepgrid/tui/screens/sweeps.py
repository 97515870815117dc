"""The customer's sweeps: a list of them, and a view of one sweep with a row per job and a column per parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from deepgrid.client.display.text import plural
from deepgrid.errors import GridError
from deepgrid.plain_text import plain
from deepgrid.tui.details import STYLES, state_words
from deepgrid.tui.screens.job_actions import JobActions
from deepgrid.tui.screens.list_screen import ListScreen
from deepgrid.tui.screens.questions import Question
from deepgrid.tui.widgets.table import PLAIN, Cell, Column, Table
from deepgrid.tui.words import NONE, amount, day_and_time, exact

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.repeat.sweep_groups import SweepGroup, SweepRow

WIDEST = 14  # of a parameter's column
OTHERS = 70  # width of the other columns, with some room for how a job ended


class SweepsScreen(ListScreen):
    """The sweeps, newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_sweep", "jobs of the sweep", show=False),
    ]
    COLUMNS = (
        Column("id", 8),
        Column("submitted", 11),
        Column("places", 6, right=True),
        Column("name", 18),
        Column("progress"),
    )
    HEAD = "Sweeps"
    KEYS = "enter jobs of the sweep  ctrl+r read again  ? keys  q"

    def __init__(self) -> None:
        super().__init__()
        self._groups: Sequence[SweepGroup] | None = None
        self._failure = ""

    async def read(self) -> None:
        try:
            self._groups, self._failure = await self.grid_app.grid.sweeps(), ""
        except GridError as error:
            self._failure = str(error)
        self.show_news()

    def draw(self) -> None:
        super().draw()
        if self._groups:
            self.query_one(Table).show(len(self._groups), stale=self.stale or bool(self._failure))
            if self._failure:
                self.tell(self._failure, wrong=True)
        self.instead("" if self._groups else self._nothing())

    def _nothing(self) -> str:
        if self._failure:
            return f"The sweeps cannot be read.\n{self._failure}\nctrl+r reads again."
        if self._groups is None:
            return "Reading sweeps ..."
        return "You have no sweeps yet.\n`dps submit FILE --array 1-100` and `grid.map()` in Python submit one."

    def cells(self, row: int) -> Sequence[Cell]:
        assert self._groups is not None
        one = self._groups[row]
        when, size = day_and_time(one.submitted), str(one.size)
        return [Cell(text) for text in (one.id[:8], when, size, plain(one.name), one.progress)]

    def action_open_sweep(self) -> None:
        if self._groups:
            self.app.push_screen(SweepScreen(self._groups[self.query_one(Table).cursor]))


class SweepScreen(JobActions):
    """The jobs of one sweep."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_log", "log of the job", show=False),
        Binding("v", "open_job", "life and bill of the job", show=False),
        Binding("R", "retry", "repeat the jobs that failed", show=False),
        Binding("ctrl+r", "read", "read again", show=False),
    ]
    KEYS = "enter log  v job  l peek  c cancel  R repeat failed  ctrl+r read again  ? keys  q"

    def __init__(self, group: SweepGroup) -> None:
        super().__init__()
        self._group = group
        self._names = group.columns

    def body(self) -> Iterable[Widget]:
        yield Table(columns(self._group), self._cells, id="body")

    def prepare(self) -> None:
        self.query_one(Table).focus()

    def action_read(self) -> None:
        self.run_worker(self._read(), group="sweep", exclusive=True)

    async def _read(self) -> None:
        try:
            self._group = await self.grid_app.grid.sweep(self._group.id)
        except GridError as error:
            self.tell(str(error), wrong=True)
        self.show_news()

    def draw(self) -> None:
        super().draw()
        group, table = self._group, self.query_one(Table)
        self.head(f"Sweep {group.id[:8]} ({plain(group.name)}): {group.progress}")
        self.instead("")
        table.show(len(group.rows), stale=self.stale)
        if self.live is not None:
            self.live.want(group.rows[row].job_id for row in table.visible_rows)

    def _cells(self, number: int) -> Sequence[Cell]:
        row = self._group.rows[number]
        job = None if row.status.cold else self._of(row)  # which may be older
        state, style = (state_words(job), STYLES.get(job.status)) if job else (row.status.words, STYLES.get(row.status))
        return [
            Cell(str(row.at)),
            *(Cell(plain(value_of(row, name))) for name in self._names),
            Cell(str(row.job_id)),
            Cell(state, style or PLAIN),
            Cell(row.cluster or NONE),
            Cell(amount(row.cost)),
            Cell(job.outcome if job and job.over else row.outcome),
        ]

    def _of(self, row: SweepRow) -> AsyncJob | None:
        return self.live.jobs.get(row.job_id) if self.live is not None else None

    @property
    def job(self) -> AsyncJob | None:
        cursor = self.query_one(Table).cursor
        return self._of(self._group.rows[cursor]) if cursor < len(self._group.rows) else None

    # -- repeating ---------------------------------------------------------------------------

    def action_retry(self) -> None:
        if self.live is not None and self.may_send():
            self.run_worker(self._ask(), group="retry", exclusive=True)

    async def _ask(self) -> None:
        """Read what the failed jobs had locked, and ask whether to lock it again."""
        assert self.live is not None
        try:
            self._group = group = await self.grid_app.grid.sweep(self._group.id)
            failed = await self.live.overview.jobs([row.job_id for row in group.failed])
        except GridError as error:
            self.tell(str(error), wrong=True)
            return
        self.show_news()
        if not failed:
            self.tell("No job of this sweep has failed.")
            return
        locks = exact(sum((job.locked for job in failed), Decimal()))
        question = (
            f"Repeat {plural(len(failed), 'failed job')} of sweep {group.id[:8]}? It locks {locks} credits. [y/N]"
        )
        self.app.push_screen(Question(question), lambda yes: self._retry(group) if yes else None)

    def _retry(self, group: SweepGroup) -> None:
        async def send() -> str:
            found = await self.grid_app.grid.retry_sweep(group.id)
            return f"Requested {plural(len(found), 'job')}: {', '.join(map(str, found))}."

        def then(words: str, done: bool) -> None:
            self.grid_app.tell_outcome(words, done)
            if self.alive:
                self.action_read()

        self.grid_app.send(f"the repetition of sweep {group.id[:8]}", send, then)


def columns(group: SweepGroup) -> list[Column]:
    """Return the columns of a sweep. Narrow screens leave out parameters, the last ones first."""
    found, needed = [Column("at", 5, right=True)], OTHERS
    for name in group.columns:
        width = min(WIDEST, max(len(name), *(len(value_of(row, name)) for row in group.rows)))
        needed += width + 2
        found.append(Column(plain(name), width, from_width=needed))
    return [
        *found,
        Column("job", 6, right=True),
        Column("state", 14),
        Column("cluster", 12, from_width=needed + 14),
        Column("cost", 9, right=True),
        Column("outcome"),
    ]


def value_of(row: SweepRow, name: str) -> str:
    """Return the values of a parameter at one place. The values of packed sets are joined."""
    return ",".join(one[name] for one in row.parameters if name in one)
