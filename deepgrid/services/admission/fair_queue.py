"""A queue for several parties that take turns: a party with much work delays no other."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from deepgrid.services.refusal import Refusal

Item = TypeVar("Item")


class Turns(Generic[Item]):
    """One line of items per party. In its turn a party gets items that are worth `worth` by their prices."""

    def __init__(self, worth: int = 1, price: Callable[[Item], int] = lambda _: 1) -> None:
        self._worth, self._price = worth, price
        self._lines: OrderedDict[str, deque[Item]] = OrderedDict()  # in the order of their turns
        self._used: Counter[str] = Counter()  # of the turns that began

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[Item]:
        return (item for line in self._lines.values() for item in line)

    def waiting(self, party: str) -> int:
        """Return the number of items of this party."""
        return len(self._lines.get(party, ()))

    def add(self, party: str, item: Item, *, first: bool = False) -> None:
        """Let an item wait after the others of its party, or before them with `first`."""
        line = self._lines.setdefault(party, deque())
        (line.appendleft if first else line.append)(item)

    def take(self, may: Callable[[Item], bool] = lambda _: True) -> Item | None:
        """Return the next item. A party keeps its place in the order while its first item may not be taken."""
        party = next((party for party, line in self._lines.items() if may(line[0])), None)
        if party is None:
            return None
        item = self._lines[party].popleft()
        self._used[party] += self._price(item)
        if self._used[party] >= self._worth:
            del self._used[party]
            self._lines.move_to_end(party)
        self._drop_empty(party)
        return item

    def remove(self, party: str, item: Item) -> None:
        """Forget an item, if it still waits."""
        line = self._lines.get(party)
        if line and item in line:
            line.remove(item)
            self._drop_empty(party)

    def _drop_empty(self, party: str) -> None:
        if not self._lines[party]:
            del self._lines[party]
            del self._used[party]


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
