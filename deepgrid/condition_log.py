"""Logs a condition that lasts, such as an outage: its start, then at growing intervals, and its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

FIRST_INTERVAL_S, LONGEST_INTERVAL_S = 60.0, 3600.0


class ConditionLog:
    """The log lines of one condition. `what` names it, such as `logs are delayed`.

    A loop calls `note` at each failure and `end` at each success. A condition may come back within a minute of its end.
    Then it is logged when the minute is over, so that a flapping one does not fill the log.
    """

    def __init__(self, log: logging.Logger, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._since: float | None = None  # None while it does not hold
        self._attempts = 0
        self._told = 0  # lines of this condition
        self._next_line_at = -LONGEST_INTERVAL_S

    def note(self, reason: object) -> None:
        """Note that it holds, for this reason."""
        now = self._clock()
        if self._since is None:
            self._since, self._attempts, self._told = now, 0, 0
        self._attempts += 1
        if now < self._next_line_at:
            return
        if self._told:
            lasts_s = now - self._since
            self._log.warning("%s for %.0f s, %d attempts: %s", self._what, lasts_s, self._attempts, reason)
        else:
            self._log.warning("%s, trying again: %s", self._what, reason)
        self._next_line_at = now + min(FIRST_INTERVAL_S * 2**self._told, LONGEST_INTERVAL_S)
        self._told += 1

    def end(self) -> None:
        """Note that it does not hold."""
        if self._since is None:
            return
        now, since, self._since = self._clock(), self._since, None
        if self._told:
            self._log.info("%s no longer, after %.0f s and %d attempts", self._what, now - since, self._attempts)
            self._next_line_at = now + FIRST_INTERVAL_S
