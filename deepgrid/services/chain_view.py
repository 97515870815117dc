"""The reads of the chain that the services need. `deepgrid.chain.client.Chain` implements them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from deepgrid.chain.figures import Constants
from deepgrid.lifecycle.job import Job


class ChainView(Protocol):
    """Reads of the newest block. All raise ChainError (transient) when the node does not answer."""

    async def job(self, job_id: int) -> Job:
        """The job. Raises NotFound."""
        ...

    async def jobs(self, job_ids: Sequence[int]) -> list[Job]:
        """These jobs in this order. Raises NotFound when one does not exist."""
        ...

    async def job_count(self) -> int:
        """Id of the last job; ids count from 1."""
        ...

    async def jobs_by_customer(self, customer: str) -> list[int]:
        """Ids of the jobs of `customer`, oldest first."""
        ...

    async def has_jobs(self, customer: str) -> bool:
        """Whether `customer` ever submitted a job."""
        ...

    async def has_role(self, role: str, address: str) -> bool:
        """Whether `address` has the role at the MetaScheduler."""
        ...

    async def constants(self) -> Constants:
        """The constants that apply to new jobs."""
        ...

    async def balance(self, address: str) -> int:
        """Credits of `address`, in wei."""
        ...
