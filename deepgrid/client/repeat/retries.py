"""Further attempts of a job whose failure was not its program's."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from deepgrid.client.repeat.marks import Tags
from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.workflow import Workflow

MOST_RETRIES = 20


@dataclass
class Retries:
    """What further attempts of a job need.

    Attributes:
        left: Number of attempts that are left.
        workflow: The workflow, with its secrets.
        tags: Tags of each attempt.
        note: Note on each attempt.
        approve: Whether each attempt may raise the allowance.
        key: Idempotency key of the first attempt; None if it had none.
        cache: Whether an equal job that has finished takes the place of an attempt.
        earlier: Numbers of the jobs of the attempts that failed.
        deciding: Held while one caller decides about the next attempt.
    """

    left: int
    workflow: Workflow
    tags: Tags | None
    note: str = ""
    approve: bool = True
    key: str | None = None
    cache: bool = False
    earlier: list[int] = field(default_factory=list)
    deciding: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def next_key(self) -> str | None:
        """Idempotency key of the next attempt. It follows from the first one, so a restarted program finds the job."""
        if self.key is None:
            return None
        text = f"retry {len(self.earlier) + 1} of {self.key}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def checked_retries(retries: object) -> int:
    """Return a number of retries. Raises InputError."""
    if isinstance(retries, bool) or not isinstance(retries, SupportsIndex) or not 0 <= index(retries) <= MOST_RETRIES:
        raise InputError(f"retries is {str(retries)[:40]}; it must be a whole number from 0 to {MOST_RETRIES}.")
    return index(retries)
