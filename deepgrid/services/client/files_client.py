"""Signed requests about files. Contents are moved at the addresses in the answers, without signatures."""

from __future__ import annotations

from typing import TypeVar

from deepgrid.errors import InputError
from deepgrid.services.client import answers
from deepgrid.services.client.services_client import ServicesClient
from deepgrid.services.files.file_messages import (
    LONGEST_LINK_S,
    Announced,
    Announcement,
    JobFiles,
    Link,
    Links,
    LinkWish,
    Transfers,
    Usage,
)
from deepgrid.services.messages import Message

M = TypeVar("M", bound=Message)


class FilesClient:
    """The files of one account. Its calls raise the same errors as `ServicesClient`."""

    def __init__(self, services: ServicesClient) -> None:
        self._services = services

    def url(self, address: str) -> str:
        """Return the URL of an address in an answer."""
        return self._services.base_url + address

    async def announce(self, digest: str, size: int, files: int) -> Announced:
        """Reserve room for files with this manifest. The same files are stored once."""
        return await self._ask(Announced, "POST", "/v1/files", Announcement(digest=digest, size=size, files=files))

    async def usage(self) -> Usage:
        """Return how much room the account's files take, and its limits."""
        return await self._ask(Usage, "GET", "/v1/files")

    async def of_job(self, job_id: int) -> JobFiles:
        """Return where the output of the account's job can be read. Raises NotFound if the grid has none."""
        return await self._ask(JobFiles, "GET", f"/v1/jobs/{job_id}/files")

    async def delete(self, job_id: int) -> None:
        """Delete the output of the account's job, and all links to it."""
        await self._services.call("DELETE", f"/v1/jobs/{job_id}/files")

    async def transfers(self, job_id: int) -> Transfers:
        """Return the addresses for the script of a job that this account has claimed."""
        return await self._ask(Transfers, "POST", f"/v1/jobs/{job_id}/transfers")

    async def share(self, job_id: int, for_s: int) -> Link:
        """Make a link to the output of the account's job."""
        if not 60 <= for_s <= LONGEST_LINK_S:
            raise InputError("A link is good for a minute to 366 days.")
        return await self._ask(Link, "POST", f"/v1/jobs/{job_id}/links", LinkWish(for_s=for_s))

    async def links(self, job_id: int) -> list[Link]:
        """Return the links to the account's job, oldest first."""
        return (await self._ask(Links, "GET", f"/v1/jobs/{job_id}/links")).links

    async def revoke_links(self, job_id: int) -> None:
        """Revoke all links to the account's job."""
        await self._services.call("DELETE", f"/v1/jobs/{job_id}/links")

    async def _ask(self, kind: type[M], method: str, path: str, body: Message | None = None) -> M:
        return answers.parse(kind, await self._services.call(method, path, body))
