"""`dps job files`, `download`, `share` and `delete-files`: what a job left at the grid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import as_customer
from deepgrid.cli.display.screen import Screen, json_text, print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, JobId, KeyFile
from deepgrid.cli.standard_streams import print_result
from deepgrid.client.display.text import plural
from deepgrid.client.job_output import LINK_FOR, ShareLink
from deepgrid.errors import InputError

WorkflowOfJob = Annotated[
    Path | None,
    typer.Option("--workflow", metavar="FILE", help="Workflow file of the job, if its output went to a bucket."),
]


@runs
async def files(number: JobId, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """List the files that the grid keeps of a job."""
    async with as_customer(key, book) as grid:
        found = await (await grid.job(number)).files()
    if as_json:
        print_json([{"path": one.path, "size": one.size, "sha256": one.sha256} for one in found])
    elif found:
        Screen().table([">bytes", "file"], ([f"{one.size:,}", one.path] for one in found))
    else:
        typer.echo(f"Job {number} left no files.", err=True)


@runs
async def download(
    number: JobId,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders of the output; * matches any name."),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="Target.", show_default="job-ID")] = None,
    workflow: WorkflowOfJob = None,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Fetch the output of a job. An interrupted download continues where it stopped."""
    target = to or Path(f"job-{number}")
    only = [pattern for path in paths or () for pattern in (path.rstrip("/"), f"{path.rstrip('/')}/*")]
    async with as_customer(key, book) as grid:
        found = await (await grid.job(number)).download(target, only or None, workflow=workflow)
    print_result(f"{plural(len(found), 'file')} of job {number} in {target}")


@runs
async def share(
    number: JobId,
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long the link works, such as 12h.")
    ] = LINK_FOR,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke all links to the job instead.")] = False,
    list_links: Annotated[
        bool, typer.Option("--list", help="List the links instead, without their addresses.")
    ] = False,
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print a link to the files of a job. Anybody who has the link can read them until it ends or is revoked."""
    if revoke and list_links:
        raise InputError("--revoke and --list are given both.", next_step="Leave out one of them.")
    async with as_customer(key, book) as grid:
        job = await grid.job(number)
        if revoke:
            await job.unshare()
            words = f"The links to job {number} work no more."
            print_result(json_text({"job": number, "revoked": True}) if as_json else words)
        elif list_links:
            show_links(await job.shares(), as_json=as_json)
        else:
            link = await job.share(for_)
            print_result(json_text({"url": link.zip_url, "until": unix(link.until)}) if as_json else link.zip_url)


def show_links(links: Sequence[ShareLink], *, as_json: bool) -> None:
    """Print the links to a job, oldest first, without their addresses."""
    if as_json:
        print_json([{"until": unix(one.until), "revoked": one.revoked} for one in links])
        return
    rows = [[f"{one.until:%Y-%m-%d %H:%M}", "revoked" if one.revoked else ""] for one in links]
    Screen().table(["until (UTC)", "state"], rows)


def unix(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


@runs
async def delete_files(number: JobId, force: Force = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Delete the files that the grid keeps of a job, and all links to them."""
    async with as_customer(key, book) as grid:
        job = await grid.job(number)
        confirm(f"Delete the files of job {number} ({job.name}) at the grid?", force=force)
        await job.delete_files()
        print_result(f"The files of job {number} are deleted.")
