"""Ranges of `--array`, as Slurm writes them, and their jobs: a sweep over one variable."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from deepgrid.cli.display.screen import json_text
from deepgrid.cli.error_boundary import FAILED, interruptions_explained
from deepgrid.cli.standard_streams import print_result
from deepgrid.client.display.text import plural
from deepgrid.errors import InputError
from deepgrid.plain_text import plain

if TYPE_CHECKING:
    from deepgrid.client.grid import AsyncGrid
    from deepgrid.client.workflow import Workflow

VARIABLE = "SLURM_ARRAY_TASK_ID"
MOST_JOBS = 10_000
_WHOLE = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)=)?([0-9,:-]+)(?:%([0-9]{1,5}))?", re.ASCII)
_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", re.ASCII)


@dataclass(frozen=True)
class ArrayRange:
    """The numbers of an array in order, the variable that gets them, and how many jobs are hot at once."""

    variable: str
    numbers: tuple[int, ...]
    at_once: int

    @property
    def parameters(self) -> list[dict[str, str]]:
        """The parameter sets of the sweep."""
        return [{self.variable: str(number)} for number in self.numbers]


def parse_array(text: str) -> ArrayRange:
    """Return the range in a text such as `1-100`, `SEED=1-9:2` or `1,5,7%2`. Raises InputError."""
    whole = _WHOLE.fullmatch(text.strip())
    parts = [_PART.fullmatch(part) for part in whole[2].split(",")] if whole else []
    numbers: dict[int, None] = {}
    for part in parts:
        first, last, step = (int(part[1]), int(part[2] or part[1]), int(part[3] or 1)) if part else (1, 0, 1)
        if first > last or not step or (last - first) // step >= MOST_JOBS:
            raise _not_a_range(text)
        numbers.update(dict.fromkeys(range(first, last + 1, step)))
    if whole is None or not 0 < len(numbers) <= MOST_JOBS or whole[3] == "0":
        raise _not_a_range(text)
    return ArrayRange(whole[1] or VARIABLE, tuple(numbers), int(whole[3] or len(numbers)))


def _not_a_range(text: str) -> InputError:
    return InputError(
        f"{text[:60]!r} is no range of an array, or has more than {MOST_JOBS:,} numbers.",
        next_step="Write it like 1-100, 1-9:2, 1,5,7 or SEED=1-100%10.",
    )


async def submit_array(
    grid: AsyncGrid, workflow: Workflow, numbers: ArrayRange, options: dict[str, Any], *, as_json: bool
) -> None:
    """Request one job per number. Returns when all were requested: at once, unless fewer may be hot at a time.

    Raises typer.Exit if some were refused.
    """
    count = len(numbers.numbers)
    jobs = await grid.map(workflow, numbers.parameters, at_once=numbers.at_once, **options)
    if numbers.at_once < count:
        typer.echo(
            f"This command runs until all {count:,} jobs are requested; if it ends before, the others are not.",
            err=True,
        )
    with interruptions_explained():
        await jobs.requested()
    ids, reasons = jobs.ids, Counter(str(one.error) for one in jobs.refused)
    for reason, refused in reasons.items():
        typer.echo(plain(f"{plural(refused, 'job')} not submitted: {reason}"), err=True)
    if jobs.unnoted:
        what = f"The places, tags and notes of {plural(jobs.unnoted, 'job')} are not kept: the services did not answer."
        typer.echo(f"{what} `dps sweep show` does not show these jobs, `dps job list` does.", err=True)
    short = jobs.sweep_id[:8]
    if as_json:
        more = {"refused": dict(reasons)} if reasons else {}
        print_result(json_text({"sweep": jobs.sweep_id, "jobs": ids, **more}))
    elif ids:
        how_many = f"{len(ids):,} of {count:,} jobs" if reasons else f"{count:,} jobs"
        print_result(f"sweep {short} submitted: {how_many}, from {min(ids)} to {max(ids)}")
        typer.echo(
            f"See it with `dps sweep show {short}`, repeat what failed with `dps sweep retry {short}`.", err=True
        )
    if reasons:
        raise typer.Exit(FAILED)
