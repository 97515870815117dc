"""The nine states of a job and the legal edges between them.

This is the only table. The Python check, the documentation and the contract's tests are derived from
it. `contracts` holds the same matrix; a test compares the two.
"""

from __future__ import annotations

from enum import IntEnum


class JobStatus(IntEnum):
    """State of a job, numbered as on chain."""

    PENDING = 0
    META_SCHEDULED = 1
    SCHEDULED = 2
    RUNNING = 3
    CANCELLED = 4
    FINISHED = 5
    FAILED = 6
    OUT_OF_CREDITS = 7
    PANICKED = 8

    def __str__(self) -> str:
        return self.words

    @property
    def hot(self) -> bool:
        """Whether the job may still change."""
        return self <= JobStatus.RUNNING

    @property
    def cold(self) -> bool:
        """Whether the job is over and its bill final."""
        return not self.hot

    @property
    def claimed(self) -> bool:
        """Whether a provider has claimed the job and it is not over. Such a claim needs a carrier."""
        return self in (JobStatus.SCHEDULED, JobStatus.RUNNING)

    @property
    def words(self) -> str:
        """The state in words: `out of credits`."""
        return self.name.lower().replace("_", "-" if self is JobStatus.META_SCHEDULED else " ")


_S = JobStatus

EDGES: dict[JobStatus, frozenset[JobStatus]] = {
    _S.PENDING: frozenset({_S.META_SCHEDULED, _S.CANCELLED, _S.PANICKED}),
    _S.META_SCHEDULED: frozenset({_S.PENDING, _S.SCHEDULED, _S.CANCELLED, _S.PANICKED}),
    _S.SCHEDULED: frozenset({_S.PENDING, _S.RUNNING, _S.CANCELLED, _S.FAILED, _S.PANICKED}),
    _S.RUNNING: frozenset({_S.CANCELLED, _S.FINISHED, _S.FAILED, _S.OUT_OF_CREDITS, _S.PANICKED}),
    _S.CANCELLED: frozenset(),
    _S.FINISHED: frozenset(),
    _S.FAILED: frozenset(),
    _S.OUT_OF_CREDITS: frozenset(),
    _S.PANICKED: frozenset(),
}


def may_move(current: JobStatus, following: JobStatus) -> bool:
    """Return whether the contract accepts the edge `current` -> `following`."""
    return following in EDGES[current]
