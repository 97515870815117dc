"""The files that a job left: a list, and their download into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from deepgrid.client.display.text import plural
from deepgrid.errors import GridError, NotFound
from deepgrid.plain_text import plain
from deepgrid.tui.screens.list_screen import ListScreen
from deepgrid.tui.widgets.table import Cell, Column, Table

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.client.job_output import OutputFile


class FilesScreen(ListScreen):
    """The files of one job, as the grid keeps them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "download", "download this file", show=False),
        Binding("a", "download_all", "download all files", show=False),
    ]
    COLUMNS = (Column("bytes", 17, right=True), Column("file"))
    KEYS = "enter download  a download all  ctrl+r read again  ? keys  q"

    def __init__(self, job: AsyncJob) -> None:
        super().__init__()
        self._job = job
        self._files: Sequence[OutputFile] | None = None
        self._failure = ""
        self._busy = False

    async def read(self) -> None:
        self._failure = ""
        try:
            self._files = await self._job.files()
        except NotFound:
            self._files = []
        except GridError as error:
            self._failure = str(error)
        self.show_news()

    def draw(self) -> None:
        super().draw()
        files, job = self._files, self._job
        size = "" if files is None else f": {plural(len(files), 'file')}, {sum(one.size for one in files):,} bytes"
        self.head(f"Files of job {job.id} ({plain(job.name)}){size}")
        if files:
            self.query_one(Table).show(len(files), stale=self.stale)
        self.instead("" if files else self._nothing())

    def _nothing(self) -> str:
        """Return why there are no files."""
        if self._failure:
            return f"The files cannot be read.\n{self._failure}\nctrl+r reads again."
        if self._files is None:
            return "Reading the list of files ..."
        when = "left no files with the grid" if self._job.over else "has left no files with the grid yet"
        return f"The job {when}.\nA workflow with `output: {{grid: {{}}}}` lets it keep $DEEPSQUARE_OUTPUT."

    def cells(self, row: int) -> Sequence[Cell]:
        assert self._files is not None
        file = self._files[row]
        return [Cell(f"{file.size:,}"), Cell(plain(file.path))]

    # -- keys --------------------------------------------------------------------------------

    def action_download(self) -> None:
        if self._files:
            self._start(self._files[self.query_one(Table).cursor].path)

    def action_download_all(self) -> None:
        if self._files:
            self._start(None)

    def _start(self, path: str | None) -> None:
        if self._busy:
            self.tell("A download is under way.", wrong=True)
            return
        self._busy = True
        self.tell(f"Downloading {plain(path) if path else 'all files'} ...")
        self.run_worker(self._download(path), group="download")

    async def _download(self, path: str | None) -> None:
        """Download into a folder of this job. An interrupted download continues where it stopped."""
        to = Path(f"job-{self._job.id}")
        try:
            found = await self._job.download(to, only=path and literal(path))
        except GridError as error:
            self.tell(str(error), wrong=True)
        else:
            self.tell(f"{plural(len(found), 'file')} of job {self._job.id} in {to}")
        self._busy = False


def literal(path: str) -> str:
    """Return a pattern that matches only this path."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
