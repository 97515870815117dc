"""`dps job shell`, `exec`, `forward`, `open`: into a running job."""

from __future__ import annotations

import sys
import webbrowser
from typing import Annotated

import typer

from deepgrid.cli.access.grid import as_customer
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import DEFAULT_KEY, BookFile, JobId, KeyFile
from deepgrid.cli.standard_streams import write_bytes
from deepgrid.client.tunnel.live_job import open_port, run_attached
from deepgrid.client.tunnel.terminal_filter import TerminalFilter
from deepgrid.errors import InputError
from deepgrid.plain_text import plain

Command = Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="A program and its arguments.")]
Ports = Annotated[str, typer.Argument(metavar="PORT[:LOCAL]", help="A port of the job, and one of this machine.")]


@runs
async def shell(
    number: JobId,
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND]", help="Instead of a shell.")] = None,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Open a terminal in a running job, on its first node. `~.` at the beginning of a line hangs up."""
    async with as_customer(key, book, asks_services=True) as grid:
        status = await (await grid.job(number)).shell(command or ())
    raise typer.Exit(status)


@runs
async def execute(
    number: JobId,
    command: Command,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Run a command in a running job, on its first node. Ends with the command's exit status."""
    filters = {True: TerminalFilter(), False: TerminalFilter()}

    def show(data: bytes, is_error: bool) -> None:
        stream = sys.stderr if is_error else sys.stdout
        data = filters[is_error].feed(data) if stream.isatty() else data
        if is_error:
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        else:
            write_bytes(data)

    async with as_customer(key, book, asks_services=True) as grid:
        status = await run_attached(await grid.job(number), command, show)
    raise typer.Exit(status)


@runs
async def forward(number: JobId, ports: Ports, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Make a port of a running job reachable on this machine, until it is interrupted."""
    await _forward(number, ports, key, book, opens=False)


@runs
async def open_page(number: JobId, ports: Ports = "8888", key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Forward a port of a job, and open its page in the browser. Waits until the job runs and listens there."""
    await _forward(number, ports, key, book, opens=True)


async def _forward(number: int, ports: str, key: KeyFile, book: BookFile, *, opens: bool) -> None:
    job_port, local_port = _ports_in(ports)
    async with as_customer(key, book, asks_services=True) as grid:
        job = await grid.job(number)
        coming = (
            open_port(job, job_port, local_port, _say)
            if opens
            else job.forward(job_port, local_port or job_port, say=_say)
        )
        async with await coming as forwarded:
            typer.echo(f"port {job_port} of job {number} is at {forwarded.url}")
            sys.stdout.flush()
            if opens and not webbrowser.open(forwarded.url):
                _say("No browser opens here. Open the address yourself")
            await forwarded.wait()


def _say(text: str) -> None:
    typer.echo(f"dps: {plain(text).rstrip('.')}.", err=True)


def _ports_in(text: str) -> tuple[int, int]:
    """Read `8888` or `8888:9999`: the port of the job, and the local port or 0. Raises InputError."""
    there, _, here = text.partition(":")
    numbers = [int(one) if one.isascii() and one.isdigit() and len(one) < 6 else 0 for one in (there, here or there)]
    if not all(0 < one < 65536 for one in numbers):
        raise InputError(f"{text[:40]!r} names no ports.", next_step="Give a port such as 8888, or 8888:9999.")
    return numbers[0], numbers[1] if here else 0
