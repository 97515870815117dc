"""What waits for several parties, who take turns: a party with much to do delays no other."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

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
        """The number of items of this party."""
        return len(self._lines.get(party, ()))

    def add(self, party: str, item: Item, *, first: bool = False) -> None:
        """Let an item wait behind the others of its party, or with `first` before them."""
        line = self._lines.setdefault(party, deque())
        (line.appendleft if first else line.append)(item)

    def take(self, may: Callable[[Item], bool] = lambda _: True) -> Item | None:
        """The next item. A party keeps its place in the order while its first item may not be taken."""
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
