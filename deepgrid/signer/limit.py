"""Limits the credits per hour that a page may lock, allow or transfer.

A permit or an approval allows the grid to lock credits, and is counted when it is signed. A request or top-up that
locks these credits within the hour is not counted again: its credits move from the permit to the request. So in each
hour at most the limit is locked or transferred, however permits and requests are combined.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits
from deepgrid.signer.refused import Refused

WINDOW_S = 3600.0


@dataclass(eq=False, slots=True)
class _Entry:
    """Counted credits. `unused` of them are allowed and not yet locked."""

    at: float
    wei: int
    unused: int = 0


class Charge:
    """Counted credits of one call. `undo` takes them back when the contract refused the call."""

    def __init__(self, entries: list[_Entry], entry: _Entry, from_grants: int) -> None:
        self._entries = entries
        self._entry = entry
        self._from_grants = from_grants

    def undo(self) -> None:
        """Nothing has moved: the credits are free again, or allowed as before."""
        if self._entry in self._entries:
            self._entries.remove(self._entry)
            if self._from_grants:
                self._entries.append(_Entry(self._entry.at, self._from_grants, self._from_grants))
        self._from_grants = 0


class SpendingLimit:
    """At most `limit_wei` per hour. Methods raise Refused when a call would exceed it."""

    def __init__(self, limit_wei: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_wei
        self._clock = clock
        self._entries: list[_Entry] = []
        self._permits: dict[int, tuple[float, int]] = {}

    def left_wei(self) -> int:
        """Return the credits that may still be counted in this hour."""
        since = self._clock() - WINDOW_S
        self._entries[:] = [entry for entry in self._entries if entry.at > since]
        return self._limit - sum(entry.wei for entry in self._entries)

    def grant(self, wei: int) -> Charge:
        """Count credits that the grid may lock from now on."""
        return self._count(wei, unused=wei)

    def permit(self, nonce: int, wei: int) -> None:
        """Count a signed permit. Permits of one nonce exclude each other, so only the largest counts."""
        at, counted = self._permits.get(nonce, (float("-inf"), 0))
        if at <= self._clock() - WINDOW_S:
            at, counted = self._clock(), 0
        self.grant(max(0, wei - counted))
        self._permits[nonce] = (at, max(wei, counted))

    def transfer(self, wei: int) -> Charge:
        """Count credits that leave the account."""
        return self._count(wei)

    def lock(self, wei: int) -> Charge:
        """Count credits that are locked now. Those that were allowed within the hour are counted already."""
        left_wei = self.left_wei()
        taken = min(wei, sum(entry.unused for entry in self._entries))
        self._require(wei - taken, left_wei)
        left = taken
        for entry in self._entries:
            part = min(left, entry.unused)
            entry.unused -= part
            entry.wei -= part
            left -= part
        entry = _Entry(self._clock(), wei)
        self._entries.append(entry)
        return Charge(self._entries, entry, taken)

    def _count(self, wei: int, unused: int = 0) -> Charge:
        self._require(wei, self.left_wei())
        entry = _Entry(self._clock(), wei, unused)
        self._entries.append(entry)
        return Charge(self._entries, entry, 0)

    def _require(self, wei: int, left: int) -> None:
        if wei > left:
            raise Refused(
                f"This would lock or move {format_credits(wei)} more credits; of the limit of"
                f" {format_credits(self._limit)} credits per hour {format_credits(max(0, left))} are left."
                " Start `dps web` with a higher --limit, or use `dps` in a terminal."
            )
