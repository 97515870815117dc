"""When the processes of accounts really ran, sampled from outside once a second; what a payload says does not count."""

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
LONGEST_S = 3.0  # between two samples, for the time between them to count


@dataclass
class Ran:
    """For how many seconds an account's jobs ran, and over which span, by the monotonic clock."""

    seconds: float = 0.0
    first: float | None = None
    last: float | None = None

    @property
    def span_s(self) -> float:
        return 0.0 if self.first is None or self.last is None else self.last - self.first


@dataclass
class Sampler:
    """Samples while its context lasts. A process counts if it is the account's and not one of OUTSIDE's group.

    The group is the test's mark on what it runs in the account itself: no process can leave a group or join one.
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
    """Accounts with a live process of a job."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                uid = entry.stat().st_uid
                if uid in uids and _counts(Path(entry.path)):
                    yield uid


def _counts(process: Path) -> bool:
    lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    return lines["State"].split()[0] not in "ZX" and str(OUTSIDE) not in lines["Groups"].split()
