"""A queue that grants slots round-robin over the waiting parties, one at a time per party."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from deepgrid.services.admission.turns import Turns
from deepgrid.services.refusal import Refusal


@dataclass(eq=False, slots=True)
class _Turn:
    party: str
    large: bool
    ready: asyncio.Future[None]


class FairQueue:
    """Grants `slots` turns at the same time. The last slot is reserved for small turns."""

    def __init__(self, slots: int, waiting_per_party: int, wait_s: float) -> None:
        self._slots = slots
        self._waiting_per_party = waiting_per_party
        self._wait_s = wait_s
        self._waiting: Turns[_Turn] = Turns()
        self._running: dict[str, _Turn] = {}

    @property
    def running(self) -> int:
        """The number of turns that are held now."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """The number of turns that wait for a slot."""
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, party: str, *, large: bool = False) -> AsyncIterator[None]:
        """Hold a slot while the context lasts.

        Refuses with 429 when too many turns of the party wait, or when no slot is free in time.
        """
        turn = _Turn(party, large, asyncio.get_running_loop().create_future())
        if (waiting := self._waiting.waiting(party)) >= self._waiting_per_party:
            raise _later(f"{waiting} of your requests wait for their turn already")
        self._waiting.add(party, turn)
        self._hand_out()
        try:
            try:
                async with asyncio.timeout(self._wait_s):
                    await turn.ready
            except TimeoutError:
                raise _later("your request still waits for its turn") from None
            yield
        finally:
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        if self._running.get(turn.party) is turn:
            del self._running[turn.party]
        else:
            self._waiting.remove(turn.party, turn)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free slots to the next parties."""
        while len(self._running) < self._slots and (turn := self._waiting.take(self._may_run)):
            self._running[turn.party] = turn
            turn.ready.set_result(None)

    def _may_run(self, turn: _Turn) -> bool:
        if turn.party in self._running or turn.ready.done():
            return False
        large = sum(other.large for other in self._running.values())
        return not turn.large or large < max(1, self._slots - 1)


def _later(why: str) -> Refusal:
    return Refusal(429, f"{why}; try again", retry_after_s=2)
