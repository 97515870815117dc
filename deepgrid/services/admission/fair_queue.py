"""A queue that grants slots round-robin over the waiting parties, one at a time per party."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

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
        self._waiting: OrderedDict[str, deque[_Turn]] = OrderedDict()  # in the order of their next turns
        self._running: dict[str, _Turn] = {}

    @property
    def running(self) -> int:
        """The number of turns that are held now."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """The number of turns that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, party: str, *, large: bool = False) -> AsyncIterator[None]:
        """Hold a slot while the context lasts.

        Refuses with 429 when too many turns of the party wait, or when no slot is free in time.
        """
        turn = _Turn(party, large, asyncio.get_running_loop().create_future())
        line = self._waiting.setdefault(party, deque())
        if len(line) >= self._waiting_per_party:
            raise _later(f"{len(line)} of your uploads wait for their check already")
        line.append(turn)
        self._hand_out()
        try:
            try:
                async with asyncio.timeout(self._wait_s):
                    await turn.ready
            except TimeoutError:
                raise _later("your upload still waits for its check") from None
            yield
        finally:
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        if self._running.get(turn.party) is turn:
            del self._running[turn.party]
        elif turn in (line := self._waiting.get(turn.party, deque())):
            line.remove(turn)
            if not line:
                del self._waiting[turn.party]
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free slots to the next parties."""
        while len(self._running) < self._slots:
            party = next((party for party, line in self._waiting.items() if self._may_run(line[0])), None)
            if party is None:
                return
            line = self._waiting.pop(party)
            turn = line.popleft()
            if line:
                self._waiting[party] = line  # after all other parties
            self._running[party] = turn
            turn.ready.set_result(None)

    def _may_run(self, turn: _Turn) -> bool:
        if turn.party in self._running or turn.ready.done():
            return False
        large = sum(other.large for other in self._running.values())
        return not turn.large or large < max(1, self._slots - 1)


def _later(why: str) -> Refusal:
    return Refusal(429, f"{why}; try again", retry_after_s=2)
