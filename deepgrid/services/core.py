"""The core of one running service: chain, database, vault, clock and limits, with cached reads of the chain."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

from deepgrid.chain.client import Chain
from deepgrid.errors import ChainError, GridError, InputError, NotFound
from deepgrid.lifecycle.job import Job
from deepgrid.services.admission import Admission
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.vault import Vault

MINIMUM_FOR_S = 60

logger = logging.getLogger(__name__)


@dataclass
class ServiceCore:
    """The part that handlers and readers of logs share. `clock` gives unix seconds."""

    domain: Domain
    chain: Chain
    database: Database
    vault: Vault
    clock: Callable[[], int]
    max_log_bytes: int
    admission: Admission
    _minimum: tuple[int, int] | None = field(default=None, init=False)  # its value, and until when it is cached

    async def job(self, job_id: int) -> Job:
        """Return the job as the chain has it. Refuses with 404 or 503."""
        with chain_reads(f"there is no job {job_id}"):
            return await self.chain.job(job_id)

    async def jobs(self, job_ids: Sequence[int]) -> list[Job]:
        """These jobs in this order, read at once. Refuses with 404 if one does not exist, or 503."""
        with chain_reads("one of the jobs does not exist"):
            return await self.chain.jobs(job_ids)

    async def minimum_wei(self) -> int:
        """Return the minimum that a job must lock, cached for a minute. Refuses with 503."""
        if self._minimum is None or self._minimum[1] < self.clock():
            with chain_reads():
                found = (await self.chain.constants()).minimum_wei
            self._minimum = (found, self.clock() + MINIMUM_FOR_S)
        return self._minimum[0]


@contextmanager
def chain_reads(missing: str = "") -> Iterator[None]:
    """Refuse with 503 while the chain does not answer. If it has no such job, refuse with 404 and `missing`."""
    try:
        yield
    except NotFound:
        if not missing:
            raise
        raise Refusal(404, missing) from None
    except ChainError:
        raise chain_is_silent() from None


def chain_is_silent() -> Refusal:
    return Refusal(503, "the chain does not answer at the moment")


def as_refusal(error: Exception) -> Refusal:
    """Return the refusal for an error. Errors of the service are logged, without texts of clients."""
    match error:
        case Refusal():
            return error
        case InputError():
            return Refusal(422, error.message)
        case GridError(transient=True):
            return Refusal(503, error.message)
        case GridError():
            logger.error("a request failed: %s", error.message)
            return Refusal(500, "the service is not configured correctly")
        case SQLAlchemyError():
            logger.error("the database failed: %s", type(error).__name__)
            return Refusal(503, "the service's store does not answer at the moment")
    logger.error("a request failed: unexpected error (%s)", type(error).__name__)
    return Refusal(500, f"the service failed ({type(error).__name__})")
