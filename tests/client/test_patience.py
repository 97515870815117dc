"""A patient reader reads like the reader behind it, and retries transient errors."""

from __future__ import annotations

import pytest

from deepgrid.client.settings import ClientSettings, patient
from deepgrid.errors import ChainError, NotFound

SETTINGS = ClientSettings(longest_pause_s=0.01)


class Reader:
    """Fails with each of the errors, then answers."""

    book = "the book"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    async def job(self, job_id: int) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return job_id


async def test_transient_errors_are_retried() -> None:
    reader = patient(Reader(ChainError("down"), ChainError("down")), 60.0, SETTINGS)
    assert await reader.job(3) == 3
    assert reader.book == "the book"


async def test_patience_ends() -> None:
    with pytest.raises(ChainError, match="down"):
        await patient(Reader(*[ChainError("down")] * 1000), 0.05, SETTINGS).job(3)


async def test_permanent_errors_are_raised_at_once() -> None:
    reader = Reader(NotFound("no job"), NotFound("no job"))
    with pytest.raises(NotFound):
        await patient(reader, None, SETTINGS).job(3)
    assert len(reader.errors) == 1
