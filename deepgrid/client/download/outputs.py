"""Fetches all files of a job's output into a folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from deepgrid.client.download.archive import is_of_job, unpack
from deepgrid.client.download.bucket import OutputBucket
from deepgrid.client.download.fetch import Fetcher, NotThere, RemoteFile, new_session
from deepgrid.client.download.folder import Folder
from deepgrid.client.engine.patience import patiently
from deepgrid.client.errors import NoOutput
from deepgrid.client.settings import ClientSettings

if TYPE_CHECKING:
    from deepgrid.workflow import Definition
    from deepgrid.workflow.models.transport import HTTPData, S3Data, TransportData

ARCHIVE = "output.zip"  # what a job calls the archive of several files


def output_of(
    job_id: int, known: Mapping[int, TransportData | None], workflow: Definition | None
) -> TransportData | None:
    """Where a job sends its output: as its workflow says, else as it was submitted by this client.

    Raises:
        NoOutput: The workflow was not given, and this client did not submit the job.
    """
    if workflow is not None:
        return workflow.output
    if job_id not in known:
        raise NoOutput(
            f"This client did not submit job {job_id}, so it does not know where its output is.",
            next_step="Pass the workflow: `download(to, workflow=FILE)`.",
        )
    return known[job_id]


async def download_output(
    output: TransportData | None, to: Path, only: str | Sequence[str] | None, settings: ClientSettings
) -> list[Path]:
    """Fetch the files of an output.

    Args:
        output: Where the workflow sends its output.
        to: The target folder.
        only: Patterns of names, such as `*.png`; `*` also stands for `/`. None means all.
        settings: Times and limits.

    Returns:
        Paths of the files, in the order of their names at the server.

    Raises:
        NoOutput: The workflow names no output, or nothing is there.
        ServiceError: The storage does not answer, or refuses.
        InputError: The folder cannot be written, or two files would have one path.
        ConfigurationError: An extra is missing.
    """
    patterns = [only] if isinstance(only, str) else only
    wanted = partial(_matches, patterns)
    if output is not None and output.s3 is not None:
        return await _from_bucket(output.s3, to, wanted, settings)
    if output is not None and output.http is not None:
        return await _from_address(output.http, to, wanted, settings)
    raise NoOutput("The workflow of the job names no output.", next_step="Add `output` with `s3` or `http` to it.")


def _matches(patterns: Sequence[str] | None, name: str) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


async def _from_bucket(
    data: S3Data, to: Path, wanted: Callable[[str], bool], settings: ClientSettings
) -> list[Path]:  # fmt: skip
    bucket = await asyncio.to_thread(OutputBucket, data)
    found = await patiently(
        lambda: asyncio.to_thread(bucket.files), settings.patience_s, settings.longest_pause_s
    )  # fmt: skip
    if not found:
        raise NoOutput("The job's bucket holds no output.", next_step="Wait until the job is over.")
    folder = Folder(to)
    files = {file.name: file for file in found if wanted(file.name)}
    places = folder.places(files)
    missing = [file for name, file in files.items() if not file.is_at(places[name])]
    folder.check_space(sum(file.size or 0 for file in missing))
    for place in places.values():
        folder.make_room(place)
    async with new_session(data.endpoint_url) as session:
        fetcher = Fetcher(session, settings)
        turns = iter([(file, places[file.name]) for file in missing])
        await _at_once(settings.downloads_at_once, partial(_fetch_all, fetcher, turns))
    return list(places.values())


async def _fetch_all(fetcher: Fetcher, turns: Iterator[tuple[RemoteFile, Path]]) -> None:
    for file, place in turns:  # several of these share the iterator
        await fetcher.fetch(file, place)


async def _at_once(count: int, work: Callable[[], object]) -> None:
    """Run `count` times the same work. The first error ends all."""
    tasks = [asyncio.ensure_future(work()) for _ in range(count)]  # type: ignore[call-overload]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _from_address(
    data: HTTPData, to: Path, wanted: Callable[[str], bool], settings: ClientSettings
) -> list[Path]:  # fmt: skip
    address, name = _file_at(data.url)
    async with new_session(address) as session:
        fetcher = Fetcher(session, settings)
        try:
            file = await patiently(
                lambda: fetcher.describe(name, address), settings.patience_s, settings.longest_pause_s
            )
        except NotThere:
            raise NoOutput(
                "The web address of the job's output has no file.",
                next_step="Wait until the job is over; the end of its log has the server's answer.",
            ) from None
        folder = Folder(to)
        folder.check_space(file.size or 0)
        place = folder.places([name])[name]
        await fetcher.fetch(file, place)
    if not await asyncio.to_thread(is_of_job, place):
        return [place]
    paths = await asyncio.to_thread(unpack, place, folder, wanted)
    if place not in paths:
        place.unlink()
    return paths


def _file_at(url: str) -> tuple[str, str]:
    """Address and name of the file that the job sent. To an address of a folder it adds the name of the file."""
    parts = urlsplit(url)
    above, _, name = parts.path.rpartition("/")
    if not name and not parts.query:
        return urlunsplit(parts._replace(path=f"{above}/{ARCHIVE}", fragment="")), ARCHIVE
    return url, unquote(name) or "output"
