"""Repeats reads of the newest block that miss a job which an earlier read has shown.

Nodes do not always answer from the same block. A pool of nodes has members that lag behind, and anvil answers from the
block before for a moment while it mines. Such an answer says that a job does not exist, although the job was just
listed. A read of it is repeated for a few seconds. After that the answer counts: a reorganisation removed the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from deepgrid.errors import ContractError

NO_SUCH_JOB = "InvalidJob"  # name of the contract's error

Read = TypeVar("Read")


@dataclass
class SeenJobs:
    """The newest job that a node has shown. Ids count from 1, so all ids up to it exist.

    Attributes:
        patience_s: For how long a read is repeated.
        pause_s: Pause between two attempts.
        newest: Id of the newest job.
    """

    patience_s: float = 10.0
    pause_s: float = 0.1
    newest: int = 0

    def add(self, job_ids: Sequence[int]) -> None:
        """Remember jobs that an answer contained."""
        self.newest = max(self.newest, *job_ids) if job_ids else self.newest

    async def read(self, job_ids: Sequence[int], read: Callable[[], Awaitable[Read]]) -> Read:
        """The result of `read`, which reads these jobs as of the newest block.

        Raises ContractError `InvalidJob` if a job was never seen, or is still missing after `patience_s`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.patience_s
        while True:
            try:
                result = await read()
            except ContractError as error:
                if error.name != NO_SUCH_JOB or not self._has_seen(job_ids):
                    raise
                if clock() >= deadline:
                    self.newest = max(min(job_ids) - 1, 0)  # a reorganisation removed it: do not wait for it again
                    raise
                await asyncio.sleep(self.pause_s)
            else:
                self.add(job_ids)
                return result

    def _has_seen(self, job_ids: Sequence[int]) -> bool:
        return bool(job_ids) and min(job_ids) > 0 and max(job_ids) <= self.newest
