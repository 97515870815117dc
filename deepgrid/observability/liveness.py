"""Whether a supervisor can do its work: what it needs, when that last answered, and what it said instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from deepgrid.errors import GridError

PATIENCE_S = 120.0


class Need(Enum):
    """What a supervisor leans on; the value is how a sentence begins."""

    LOGIN = "The login node"
    SLURM = "Slurm"
    CHAIN = "The chain's node"
    BLOCKS = "The chain as it is followed"
    PREFECT = "Prefect's API"


ESSENTIAL = frozenset(
    {Need.LOGIN, Need.SLURM, Need.CHAIN, Need.BLOCKS}
)  # without Prefect jobs are carried all the same


@dataclass(slots=True)
class _Sign:
    at: float  # on the monotonic clock, which no time server sets
    unix: float = 0.0
    fault: str = ""


class Liveness:
    """Signs of life by need. What never answered is waited for as long as what fell silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        needs = set(Need) - {Need.BLOCKS}
        self._signs: dict[Need, _Sign] = {need: _Sign(clock()) for need in needs}

    def note(self, need: Need, error: GridError | None = None) -> None:
        """It answered, or failed with `error`."""
        if error is not None:
            self._signs.setdefault(need, _Sign(self._clock())).fault = error.message
        else:
            self._signs[need] = _Sign(self._clock(), time.time())

    @contextmanager
    def expecting(self, need: Need) -> Iterator[None]:
        """While it lasts, silence about `need` counts."""
        self._signs[need] = _Sign(self._clock())
        try:
            yield
        finally:
            self._signs.pop(need, None)

    def last(self, need: Need) -> float:
        """When it last answered, unix seconds; 0 for never."""
        sign = self._signs.get(need)
        return sign.unix if sign else 0.0

    def well(self, need: Need) -> bool:
        """Whether it answered when it was last asked."""
        sign = self._signs.get(need)
        return sign is not None and sign.unix > 0 and not sign.fault

    def complaints(self) -> list[str]:
        """A sentence for each essential need that has not answered for PATIENCE_S."""
        now = self._clock()
        silent = [
            (need, sign) for need, sign in self._signs.items() if need in ESSENTIAL and now - sign.at > PATIENCE_S
        ]
        return [
            f"{need.value} has not answered for {now - sign.at:.0f} s{': ' + sign.fault if sign.fault else '.'}"
            for need, sign in silent
        ]
