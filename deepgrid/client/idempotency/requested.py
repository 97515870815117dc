"""What one customer has requested so far, by the hashes of the definitions."""

from __future__ import annotations

import asyncio

from deepgrid.chain.client import Chain


class RequestedJobs:
    """An index of all jobs of a customer. It is read once, and from then on only what is new.

    The hash of a job never changes.
    """

    def __init__(self, chain: Chain, customer: str) -> None:
        self._chain = chain
        self._customer = customer
        self._known = 0  # jobs of the customer that were read
        self._ids: dict[str, int] = {}
        self._reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Read the jobs that are new. Raises ChainError."""
        async with self._reading:
            new = await self._chain.jobs_by_customer(self._customer, self._known)
            for job in await self._chain.jobs(new):
                self._ids.setdefault(job.definition.definition_hash, job.id)
            self._known += len(new)

    def find(self, definition_hash: str) -> int | None:
        """The id of the first job with this hash, as of the last `refresh`; None if there is none."""
        return self._ids.get(definition_hash)

    def forget(self) -> None:
        """Read everything again next time, because a reorganisation of the chain has replaced jobs."""
        self._known = 0
        self._ids.clear()
