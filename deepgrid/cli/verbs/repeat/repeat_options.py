"""Options of verbs that find and repeat jobs."""

from __future__ import annotations

from typing import Annotated

import typer

Tag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME=VALUE", help="Tag, such as project=wing; repeatable. It is not on chain."),
]
WithTag = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME[=VALUE]", help="Only jobs with this tag; repeatable, all must match."),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note for yourself, not on chain.")]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        help="Instead of credits: how long the job may run, such as 4h or 90m. Partial minutes are rounded up.",
    ),
]
Array = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="[NAME=]RANGE",
        help="Submit one job per number, such as 1-100, 1-9:2 or 1,5,7; with %N at most N at once. The number is in the"
        " variable NAME, by default SLURM_ARRAY_TASK_ID.",
    ),
]
Retries = Annotated[
    int,
    typer.Option(
        "--retries",
        metavar="N",
        min=0,
        max=20,
        help="Follow the job, and run it again up to N times if it fails for another reason than its program.",
    ),
]
After = Annotated[int | None, typer.Option("--after", metavar="JOB", help="Start only when this job has finished.")]
AfterAny = Annotated[
    int | None, typer.Option("--after-any", metavar="JOB", help="Start only when this job has ended in any way.")
]
