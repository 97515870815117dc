"""The number of jobs that may be claimed: no more than Slurm lets the provider's accounts submit.

Slurm does not say the limit in advance, so it is learned: the number of jobs that Slurm held when it refused one more.
One claim above the limit tries again from time to time, and so notices when the limit was raised.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.commands.complaints import is_of_one_account

FORGET_S = 3600.0

logger = logging.getLogger(__name__)


class ClaimRoom:
    """The limit of submitted jobs, as it was learned. `held` counts the jobs of claims that Slurm has.

    With `accounts_are_apart`, each customer has a separate account. Then a limit of one account concerns no other
    customer: jobs of that customer wait, and claims continue.
    """

    def __init__(self, held: Callable[[], int], *, accounts_are_apart: bool) -> None:
        self._held = held
        self._accounts_are_apart = accounts_are_apart
        self._most: int | None = None
        self._learned_at = 0.0

    def full(self, key: JobKey, limit: str) -> None:
        """Slurm did not accept the job of this claim, by its message `limit`."""
        if self._accounts_are_apart and is_of_one_account(limit):
            return
        if self._most is None:
            logger.warning("job %d waits for room in Slurm, fewer jobs are claimed: %s", key.job_id, limit)
        self._most, self._learned_at = self._held(), time.monotonic()

    def accepted(self) -> None:
        """Slurm accepted a job, so the limit is not lower than what it holds now."""
        if self._most is not None:
            self._most = max(self._most, self._held())

    @property
    def is_known(self) -> bool:
        """Whether there is a limit. It is forgotten an hour after Slurm last named it."""
        if self._most is not None and time.monotonic() - self._learned_at > FORGET_S:
            self._most = None
        return self._most is not None

    def beside(self, claims: int) -> int:
        """Return how many more jobs may be claimed in addition to this many claims."""
        return max(0, (self._most or 0) + 1 - claims)
