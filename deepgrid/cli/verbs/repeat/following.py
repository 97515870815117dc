"""Follows a job that was submitted, and repeats it if its cluster failed."""

from __future__ import annotations

import asyncio

import typer

from deepgrid.cli.display.job_display import show_event
from deepgrid.cli.display.screen import Screen
from deepgrid.cli.standard_streams import OutputLost, require_output
from deepgrid.client.job import AsyncJob
from deepgrid.client.repeat.repeatable import run_again
from deepgrid.client.workflow import Workflow


async def follow(job: AsyncJob, workflow: Workflow, *, timestamps: bool, exits: bool) -> None:
    """Show the job until it is over. A job that was submitted with `retries` is run again if its cluster failed.

    With `exits`, end with its exit status.
    """
    screen = Screen(timestamps=timestamps)
    try:
        require_output()
        if not workflow.definition.enable_logging:
            screen.remark("enableLogging is off: the job's output stays at the cluster")
        while True:
            async for event in job.events():
                show_event(screen, event)
            number, why = job.id, job.on_chain.last_error
            if not await run_again(job):
                break
            screen.remark(f"{why}: job {number} runs again as job {job.id}; {job.retries_left} more tries are left")
    except (asyncio.CancelledError, OutputLost):
        lost = " Nothing repeats it any more if it fails." if job.retries_left else ""
        typer.echo(
            f"\ndps: job {job.id} continues. See it with `dps job logs {job.id} --follow`, end it with"
            f" `dps job cancel {job.id}`.{lost}",
            err=True,
        )
        raise
    if exits:
        raise typer.Exit(job.exit_status or 0)
