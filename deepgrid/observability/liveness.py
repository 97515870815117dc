"""Liveness of a supervisor: when each service that it needs last answered, and its last error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from deepgrid.errors import GridError


class Need(Enum):
    """A service that a supervisor needs. The value is the subject of a sentence."""

    LOGIN = "The login node"
    SLURM = "Slurm"
    CHAIN = "The chain's node"
    BLOCKS = "The chain as it is followed"
    PREFECT = "Prefect's API"


ESSENTIAL = frozenset({Need.LOGIN, Need.SLURM, Need.CHAIN, Need.BLOCKS})  # jobs are carried without Prefect too


@dataclass(slots=True)
class _Sign:
    at: float  # by the monotonic clock, which no time server changes
    unix: float = 0.0
    fault: str = ""


class Liveness:
    """The last answer of each need. A need that never answered gets the same patience as one that stopped answering."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, patience_s: float = 120.0) -> None:
        self.patience_s = patience_s
        self._clock = clock
        needs = set(Need) - {Need.BLOCKS}
        self._signs: dict[Need, _Sign] = {need: _Sign(clock()) for need in needs}

    def note(self, need: Need, error: GridError | None = None) -> None:
        """Record an answer, or a failure with `error`."""
        if error is not None:
            self._signs.setdefault(need, _Sign(self._clock())).fault = error.message
        else:
            self._signs[need] = _Sign(self._clock(), time.time())

    @contextmanager
    def expecting(self, need: Need) -> Iterator[None]:
        """Require answers of `need` while the context lasts."""
        self._signs[need] = _Sign(self._clock())
        try:
            yield
        finally:
            self._signs.pop(need, None)

    def last(self, need: Need) -> float:
        """Unix time of its last answer; 0 for never."""
        sign = self._signs.get(need)
        return sign.unix if sign else 0.0

    def well(self, need: Need) -> bool:
        """Whether the last request was answered."""
        sign = self._signs.get(need)
        return sign is not None and sign.unix > 0 and not sign.fault

    def complaints(self) -> list[str]:
        """A sentence for each essential need that has not answered for `patience_s`."""
        now = self._clock()
        silent = [
            (need, sign) for need, sign in self._signs.items() if need in ESSENTIAL and now - sign.at > self.patience_s
        ]
        return [
            f"{need.value} has not answered for {now - sign.at:.0f} s{': ' + sign.fault if sign.fault else '.'}"
            for need, sign in silent
        ]
