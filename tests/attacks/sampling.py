"""Samples every second, from outside, which accounts have running processes. It does not trust the payloads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.attacks.attacker import OUTSIDE

EVERY_S = 1.0
LONGEST_S = 3.0  # the time between two samples counts only below this


@dataclass
class Ran:
    """The seconds in which the jobs of an account ran, and the span of them, by the monotonic clock."""

    seconds: float = 0.0
    first: float | None = None
    last: float | None = None

    @property
    def span_s(self) -> float:
        return 0.0 if self.first is None or self.last is None else self.last - self.first


@dataclass
class Sampler:
    """Samples for the duration of its context. Processes of the account count, except those with the group OUTSIDE.

    The test gives this group to processes that it starts as the account. No process can leave or join a group.
    """

    uids: frozenset[int]
    ran: dict[int, Ran] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.ran = {uid: Ran() for uid in self.uids}
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        before: tuple[float, frozenset[int]] = (0.0, frozenset())
        while not self._stop.wait(EVERY_S):
            now, running = time.monotonic(), frozenset(_running(self.uids))
            for uid in running:
                ran = self.ran[uid]
                if uid in before[1] and now - before[0] <= LONGEST_S:
                    ran.seconds += now - before[0]
                ran.first, ran.last = ran.first or now, now
            before = now, running


def _running(uids: frozenset[int]) -> Iterable[int]:
    """Yield the accounts with a live process of a job."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):  # the process has just ended
                uid = entry.stat().st_uid
                if uid in uids and _counts(Path(entry.path)):
                    yield uid


def _counts(process: Path) -> bool:
    lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    return lines["State"].split()[0] not in "ZX" and str(OUTSIDE) not in lines["Groups"].split()
