"""A bar that counts the jobs of a sweep while a program waits for them.

A terminal shows it on the error output, a notebook in one cell. Elsewhere nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from deepgrid.client.display.html import progress_html
from deepgrid.client.display.screens import REDRAW_S, is_in_notebook
from deepgrid.extras import needs

REDRAWS_PER_S = 4


class Bar(Protocol):
    """Draws how many jobs are over, and how many of them did not finish."""

    def __call__(self, over: int, unfinished: int) -> None: ...


@contextmanager
def progress_bar(total: int, *, shown: bool) -> Iterator[Callable[[bool], None]]:
    """Show a bar for this number of jobs. It gives the function to call when a job is over, with its success."""
    with _bar_here(total, shown=shown) as draw:
        over = unfinished = 0

        def step(has_finished: bool) -> None:
            nonlocal over, unfinished
            over, unfinished = over + 1, unfinished + (not has_finished)
            draw(over, unfinished)

        yield step


@contextmanager
def _bar_here(total: int, *, shown: bool) -> Iterator[Bar]:
    if shown and is_in_notebook():
        yield _cell_bar(total)
    elif shown and sys.stderr is not None and sys.stderr.isatty():
        with _terminal_bar(total) as draw:
            yield draw
    else:
        yield lambda over, unfinished: None


def _cell_bar(total: int) -> Bar:
    with needs("notebook"):
        from IPython.display import HTML, display
    cell = display(HTML(progress_html(0, 0, total)), display_id=True)  # type: ignore[no-untyped-call]
    drawn = time.monotonic()

    def draw(over: int, unfinished: int) -> None:
        nonlocal drawn
        if cell is not None and (over == total or time.monotonic() - drawn >= REDRAW_S):
            drawn = time.monotonic()
            cell.update(HTML(progress_html(over, unfinished, total)))  # type: ignore[no-untyped-call]

    return draw


@contextmanager
def _terminal_bar(total: int) -> Iterator[Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("jobs over{task.description}"), TimeElapsedColumn()
    # Redirected streams would send what other threads print to the error output.
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        refresh_per_second=REDRAWS_PER_S,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("", total=total)

        def draw(over: int, unfinished: int) -> None:
            words = f", {unfinished} did not finish" if unfinished else ""
            bar.update(task, completed=over, description=words)

        yield draw
