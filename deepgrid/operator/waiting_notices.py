"""Notices to customers about their waiting jobs: the words, and when they are new."""

from __future__ import annotations

import time
from collections.abc import Sequence

from deepgrid.scheduling.market import Waiting
from deepgrid.scheduling.rounds.reasons import line

REPEAT_S = 300.0  # least time between two notices of which only the place differs
LATER_S = 60  # a reservation that moves by more is told at once


class WaitingNotices:
    """Makes the notices, and remembers the last one of each job, so that no round repeats it."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Waiting, str, float]] = {}  # what was told, in which words, monotonic time

    def changed(self, waiting: Sequence[Waiting]) -> list[tuple[int, str, str]]:
        """Notices for jobs with a new reason, and at times for those whose place changed. Forgets all other jobs.

        A job with a reservation is told at once when that moves: a job before it was topped up, for example.
        """
        now, before, notices = time.monotonic(), self._last, []
        self._last = {}
        for one in waiting:
            text = words(one)
            told, said, at = before.get(one.job_id, (None, "", 0.0))
            if told and told.reason == one.reason and not _moved(told, one) and (said == text or now - at < REPEAT_S):
                self._last[one.job_id] = told, said, at
                continue
            self._last[one.job_id] = one, text, now
            notices.append((one.job_id, "waiting", text))
        return notices


def _moved(told: Waiting, now: Waiting) -> bool:
    """Whether the job's reservation is later than it was told."""
    return now.has_reservation and bool(told.estimated_start) and now.estimated_start > told.estimated_start + LATER_S


def words(waiting: Waiting) -> str:
    """Why a job waits, after its place if it has one.

    `3rd in line, 2 jobs of others first; your share of CPUs is 41 %; estimated start 2027-01-15 08:00 UTC at alpha;
    1 cluster is full`
    """
    place = line(waiting)
    return f"{place}; {waiting.reason}" if place else waiting.reason
