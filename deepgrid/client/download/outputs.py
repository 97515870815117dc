"""Lists the objects of a job's S3 output, and signs their addresses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from deepgrid.client.download.fetch import Fetcher, NotThere, RemoteFile, new_session
from deepgrid.client.download.folder import Folder, is_of_job, unpack
from deepgrid.client.errors import NoOutput
from deepgrid.client.settings import ClientSettings, patiently
from deepgrid.errors import AccessDenied, ServiceError
from deepgrid.extras import needs
from deepgrid.safe_http import is_loopback

if TYPE_CHECKING:
    from deepgrid.workflow import Definition
    from deepgrid.workflow.models.transport import HTTPData, S3Data, TransportData

ARCHIVE = "output.zip"  # a job's name for the archive of several files

SIGNED_FOR_S = 3600
REFUSED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403", "401", "AllAccessDisabled"})
TIMEOUT_S = 60
_S3 = {
    "signature_version": "s3v4",
    "s3": {"addressing_style": "path"},
    "connect_timeout": TIMEOUT_S,
    "read_timeout": TIMEOUT_S,
    "retries": {"mode": "standard", "max_attempts": 4},
}
# The workflow says everything: profiles and files of this user do not count. Each value is a name in the configuration
# file, names in the environment, the default, and a conversion.
_OWN_VARIABLES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class OutputBucket:
    """The folder of a bucket to which a job's output went."""

    def __init__(self, data: S3Data) -> None:
        """Prepare a client. Raises ConfigurationError without the extra `s3`."""
        with needs("s3"):
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        self._bucket, _, above = data.bucket_url.removeprefix("s3://").partition("/")
        # As s5cmd names folders: the bucket's URL, the path, and one `/` at the end.
        self._folder = f"{above}{data.path.rstrip('/')}/".removeprefix("/")
        session = Session(session_vars=_OWN_VARIABLES)
        local = is_loopback(urlsplit(data.endpoint_url).hostname or "")
        session.set_credentials(data.access_key_id, data.secret_access_key)
        options = {"config": Config(proxies={} if local else None, **_S3), "verify": os.environ.get("SSL_CERT_FILE")}
        try:
            self._client: Any = session.create_client("s3", data.region, endpoint_url=data.endpoint_url, **options)
        except (BotoCoreError, ValueError) as error:
            raise _no_bucket(error) from None

    def files(self) -> list[RemoteFile]:
        """Return the files of the folder, in the order of their keys. Raises NoOutput or ServiceError."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return list(self._list())
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))[:40]
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        except (BotoCoreError, ValueError) as error:
            raise ServiceError(f"The storage of the job's output does not answer ({type(error).__name__}).") from None
        if code == "NoSuchBucket":
            raise NoOutput("The bucket of the job's output does not exist.", next_step="Create it before the job runs.")
        if code in REFUSED or status in (401, 403):
            raise AccessDenied(
                f"The storage of the job's output refuses access ({code}).",
                next_step="Check the credentials in the workflow.",
            )
        raise ServiceError(f"The storage of the job's output refuses to list it ({code}).", transient=status >= 500)

    def _list(self) -> Iterator[RemoteFile]:
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=self._folder):
            for entry in page.get("Contents", ()):
                key: str = entry["Key"]
                name = key[len(self._folder) :]
                if name and not key.endswith("/"):  # names with a `/` at the end are marks for empty folders
                    modified_s = int(entry["LastModified"].timestamp())
                    yield RemoteFile(
                        name, int(entry["Size"]), entry["ETag"], modified_s, True, partial(self._sign, key)
                    )

    def _sign(self, key: str) -> str:
        where = {"Bucket": self._bucket, "Key": key}
        return str(self._client.generate_presigned_url("get_object", where, SIGNED_FOR_S))


def _no_bucket(error: Exception) -> NoOutput:
    return NoOutput(
        f"The workflow's S3 output cannot be used ({type(error).__name__}).",
        next_step="Correct its region and endpointUrl.",
    )


def output_of(
    job_id: int, known: Mapping[int, TransportData | None], workflow: Definition | None
) -> TransportData | None:
    """Return where a job sends its output: from its workflow, or from this client's submission if that does not say.

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
    """Fetch the files of an output into a folder.

    Arguments, result and errors are the same as for `AsyncJob.download`.
    """
    patterns = [only] if isinstance(only, str) else only
    wanted = partial(matches, patterns)
    if output is not None and output.s3 is not None:
        return await _from_bucket(output.s3, to, wanted, settings)
    if output is not None and output.http is not None:
        return await _from_address(output.http, to, wanted, settings)
    if output is not None and output.grid is not None:
        raise NoOutput("The grid has no files of this job.", next_step="Read why at the end of its log.")
    raise NoOutput(
        "The workflow of the job names no output.", next_step="Add `output` with `grid`, `s3` or `http` to it."
    )


def matches(patterns: Sequence[str] | None, name: str) -> bool:
    """Return whether a name is one of the patterns, or has one; None means all."""
    return patterns is None or any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


async def _from_bucket(data: S3Data, to: Path, wanted: Callable[[str], bool], settings: ClientSettings) -> list[Path]:
    bucket = await asyncio.to_thread(OutputBucket, data)
    found = await patiently(lambda: asyncio.to_thread(bucket.files), settings.patience_s, settings.longest_pause_s)
    if not found:
        raise NoOutput("The job's bucket holds no output.", next_step="Wait until the job is over.")
    folder = Folder(to)
    files = {file.name: file for file in found if wanted(file.name)}
    places = folder.places(files)
    missing = [file for name, file in files.items() if not file.is_at(places[name])]
    folder.check_space(sum(file.size or 0 for file in missing))
    folder.make_room(*places.values())
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
) -> list[Path]:
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
    """Return address and name of the file that the job sent. Adds the name of the file to an address of a folder."""
    parts = urlsplit(url)
    above, _, name = parts.path.rpartition("/")
    if not name and not parts.query:
        return urlunsplit(parts._replace(path=f"{above}/{ARCHIVE}", fragment="")), ARCHIVE
    return url, unquote(name) or "output"
