"""The form to submit a job: its fields, each cluster's price, updated while the user types, and the file itself."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from deepgrid.client.display.story import conditions
from deepgrid.errors import GridError, InputError
from deepgrid.plain_text import plain
from deepgrid.tui.details import OLD_QUOTE_S, quote_lines
from deepgrid.tui.earlier_terms import EarlierTerms
from deepgrid.tui.screens.form import Confirmation, Field
from deepgrid.tui.screens.money_forms import MoneyForm, amount_of
from deepgrid.tui.screens.questions import Choice
from deepgrid.tui.templates import copy_template, templates, write_copy
from deepgrid.tui.watched_file import stamp_of, text_of
from deepgrid.tui.widgets.text_pane import Line, SideText, pair, plain_line
from deepgrid.tui.words import exact, minutes_of

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.quotes import Quote
    from deepgrid.client.workflow import Workflow

MASK = "***"
TYPING_S = 0.4  # a pause in typing after which a quote is asked for
LOOK_S = 1.0  # interval between two looks at the file


class SubmitForm(MoneyForm):
    """Submits a workflow file as a job."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+e", "edit", "edit the file in $EDITOR", show=False, priority=True),
        Binding("ctrl+t", "templates", "start from a template", show=False, priority=True),
        Binding("ctrl+r", "quote", "ask for a new quote", show=False, priority=True),
    ]
    HEAD = "Submit a job"
    KEYS = "enter next, last: submit  right complete  ctrl+e edit  ctrl+t template  esc"

    def __init__(self, again: AsyncJob | None = None) -> None:
        super().__init__()
        self._again = again
        self._earlier = None if again is None else EarlierTerms.of(again)
        self._quote: Quote | None = None
        self._quoted_at = self._asked_at = 0.0
        self._workflow: Workflow | None = None
        self._faults: list[str] = []
        self._stamp: object = None
        self._typing: Timer | None = None

    def fields(self) -> Sequence[Field]:
        again = self._again
        file = str(self.grid_app.files.get(again.id, "")) if again else ""
        labels = " ".join(conditions(again.on_chain)) if again else ""
        amount = exact(again.locked) if again else ""
        return [
            Field("file", "file", "workflow file; ctrl+t starts from a template", file, paths=True),
            Field("amount", "credits", "credits to lock; empty: what the time costs", amount),
            Field("name", "name", "name of the job; by default the file's name", again.name if again else ""),
            Field("time", "time", "how long it may run, such as 4h or 90m", "1h"),
            Field("labels", "labels", "conditions on clusters, such as os=linux mem>=4000", labels),
            *self._order(),
        ]

    def _order(self) -> list[Field]:
        """Return the field for the job before it, if the earlier job waits again."""
        first = self._earlier.terms.after if self._earlier else 0
        return [Field("after", "after", "number of the job that must be over first", str(first))] if first else []

    def terms_again(self) -> EarlierTerms | None:
        """Return the terms that the job keeps, if it is submitted again. Raises InputError for a wrong field."""
        if self._earlier is None:
            return None
        after = self.value("after") if self._earlier.terms.after else ""
        return self._earlier.changed(after, None if self.value("amount") else minutes_of(self.value("time")))

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="body"):
            with Vertical(id="form"):
                yield from self.fields()
                yield SideText(id="meaning")
                yield SideText(id="below")
            yield SideText(id="side")

    def prepare(self) -> None:
        super().prepare()
        self.set_interval(LOOK_S, self._look)
        if self._again and not self.value("file"):
            self.tell(f"Reading the file of job {self._again.id} ...")
            self.run_worker(self._fetch(self._again), group="file", exclusive=True)

    async def _fetch(self, job: AsyncJob) -> None:
        """Write the file of an earlier job, as the services keep it, into the current folder."""
        try:
            kept = await job.file()
            file = await asyncio.to_thread(write_copy, f"job-{job.id}", kept.text, Path())
        except GridError as error:
            if self.alive:
                self.tell(f"{plain(str(error))} Name the file of job {job.id}.", wrong=True)
            return
        if self.alive and not self.value("file"):
            self.query_one("#file", Input).value = str(file)
            hidden = f" Write its secrets again, which are {MASK}: {', '.join(kept.masked)}." if kept.masked else ""
            self.tell(f"Wrote {file}, the file of job {job.id}; ctrl+e edits it.{plain(hidden)}")

    # -- the file ----------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return Path(self.value("file")).expanduser()

    def _look(self) -> None:
        """Read the file again when it changed, and ask for a new quote when the shown one is old."""
        if not self.alive:
            return
        if self.path.suffix and self._stamp != stamp_of(self.path):
            self._ask()
        elif self._quote is not None and not self.fresh:
            self.update()
            if self.grid_app.now() - self._asked_at > OLD_QUOTE_S / 2 and not self.sending:
                self._ask()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.input.id != "amount":
            self._quote = None
            if self._typing is not None:
                self._typing.stop()
            self._typing = self.set_timer(TYPING_S, self._ask)

    def _ask(self) -> None:
        if not self.alive:
            return
        self._asked_at = self.grid_app.now()
        self._stamp = stamp_of(self.path)
        self.run_worker(self._read(self.path, self.value("time"), self.value("labels")), group="quote", exclusive=True)

    async def _read(self, path: Path, time: str, labels: str) -> None:
        """Read the file, check it, and ask for a quote. The form may be closed meanwhile."""
        self._workflow, self._faults = None, []
        text = await asyncio.to_thread(text_of, path)
        if not self.alive:
            return
        for pane in ("#side", "#below"):
            self.query_one(pane, SideText).show([plain_line(plain(line.expandtabs(4))) for line in text.splitlines()])
        if text:
            try:
                grid = self.grid_app.grid
                self._workflow = await grid.workflow(path)
                uses, affinities = labels_of(labels)
                self._quote = await grid.estimate(
                    self._workflow, minutes=minutes_of(time), uses=uses, affinities=affinities
                )
                self._quoted_at = self.grid_app.now()
            except GridError as error:
                self._faults = str(error).splitlines()
        self.show_news()

    # -- drawing -----------------------------------------------------------------------------

    @property
    def fresh(self) -> bool:
        """Whether there is a quote that is not too old."""
        return self._quote is not None and self.grid_app.now() - self._quoted_at <= OLD_QUOTE_S

    def meaning(self) -> list[Line]:
        lines: list[Line] = []
        if not self.value("file"):
            return [plain_line("Name a workflow file, or press ctrl+t for a template.")]
        if not self.path.is_file():
            return [plain_line("There is no such file yet.")]
        lines += [plain_line(plain(fault), "red", indent=2) for fault in self._faults]
        if self._quote is not None:
            if (terms := self.terms_again()) and (words := terms.words()):
                lines.append(pair("terms", words))  # first: a list of many clusters continues below the screen
            lines += quote_lines(self._quote, self.grid_app.now() - self._quoted_at)
            lines.append(self._deposit(self._quote))
        elif not self._faults:
            lines.append(plain_line("Asking for a quote ..."))
        if self._workflow is not None:
            lines += [plain_line(plain(advice), "yellow", indent=2) for advice in self._workflow.validate()]
        return lines

    def _deposit(self, quote: Quote) -> Line:
        """Return what is locked, and why: the typed credits, or what the time costs."""
        if not self.value("amount"):
            return pair("locks", f"{exact(self._locked(quote))} credits, what this time costs: no credits are typed")
        return pair("locks", f"{exact(self._locked(quote))} credits; what is not used comes back")

    # -- sending -----------------------------------------------------------------------------

    def confirmation(self) -> Confirmation:
        quote, workflow = self._quote, self._workflow
        if self._faults:
            raise InputError(self._faults[0])
        if quote is None or workflow is None:
            raise InputError("There is no quote yet.", next_step="Name a file, and wait for the quote.")
        if not self.fresh:
            self._ask()
            raise InputError("The quote was too old; here is a new one.", next_step="Press enter again if you agree.")
        locked = self._locked(quote)
        left, name, path = self.left_after(locked), self.value("name") or None, self.path
        uses, affinities = labels_of(self.value("labels"))
        app, terms = self.grid_app, self.terms_again()
        if terms is not None:
            terms.check(quote, locked)

        async def send() -> str:
            more = await terms.options() if terms else {}
            job = await app.grid.submit(
                workflow, locked, name=name, uses=uses, affinities=affinities, quote=quote, **more
            )
            app.files[job.id] = path
            app.submitted = job.id
            return f"Job {job.id} ({plain(job.name)}) is submitted; {exact(locked)} credits are locked."

        question = (
            f"Submit {plain(self.path.name)}? {exact(locked)} credits are locked at contract {self.terms.contract};"
            f" {exact(left)} are left. [y/N]"
        )
        return question, f"the request of {plain(name or self.path.stem)}", send

    def _locked(self, quote: Quote) -> Decimal:
        if not self.value("amount"):
            if not quote.offers:
                raise InputError("No cluster can run it, so the time has no price.", next_step="Type credits.")
            return max(quote.needed, self.terms.minimum)
        locked = amount_of(self.value("amount"))
        if locked < self.terms.minimum:
            raise InputError(
                f"{exact(locked)} credits are too few.", next_step=f"Lock at least {exact(self.terms.minimum)}."
            )
        return locked

    def _sent(self, words: str, done: bool) -> None:
        super()._sent(words, done)
        if not done and self.is_attached:
            self._ask()  # prices may have changed

    # -- keys --------------------------------------------------------------------------------

    def action_quote(self) -> None:
        self._ask()

    def action_templates(self) -> None:
        """Choose a template. It is copied into the current folder."""
        self.app.push_screen(
            Choice("Templates; the chosen one is copied into this folder", templates()), self._start_from
        )

    def _start_from(self, name: str | None) -> None:
        if name is None:
            return
        try:
            file = copy_template(name, Path())
        except InputError as error:
            self.tell(str(error), wrong=True)
            return
        self.query_one("#file", Input).value = str(file)
        self.tell(f"Wrote {file}; ctrl+e edits it.")

    def action_edit(self) -> None:
        """Edit the file in $EDITOR, and come back."""
        if not self.value("file"):
            self.tell("Name a file first, or press ctrl+t for a template.", wrong=True)
            return
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            with self.app.suspend():
                status = subprocess.run([*shlex.split(editor), str(self.path)], check=False).returncode
        except (OSError, ValueError, SuspendNotSupported):
            self.tell(f"{plain(editor)} cannot be started; set EDITOR.", wrong=True)
            return
        self.tell(f"{plain(editor)} ended with status {status}." if status else "")
        self._ask()


def labels_of(text: str) -> tuple[list[str], list[str]]:
    """Return typed labels as `uses` (`key=value`) and as conditions (all others)."""
    words = text.split()
    uses = [word for word in words if "=" in word and not any(sign in word for sign in ("==", "<", ">", "!=", ":in:"))]
    return uses, [word for word in words if word not in uses]
