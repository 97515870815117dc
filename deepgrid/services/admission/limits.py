"""Limits per source address, per signer and in total, and the counters that enforce them."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepgrid.services.refusal import Refusal

if TYPE_CHECKING:
    from starlette.types import Scope

MOST_KEYS = 20_000  # of a table of buckets; the longest unused keys are dropped first
IPV6_PREFIX = 64  # the smallest network of one subscriber
LONGEST_SOURCE = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """`per_s` per second in the long run, and up to `burst` at once."""

    per_s: float
    burst: float


@dataclass(frozen=True)
class Limits:
    """Limits of the services. Times are seconds, sizes bytes. An address is a source address (IPv6: its /64).

    The proxy has further limits per address (`EdgeLimits`).
    """

    running: int = 512  # requests; public reads and followers do not count
    running_per_address: int = 128
    followers: int = 2048  # requests and streams that wait for output
    followers_per_job: int = 512
    requests_per_signer: Rate = Rate(100, 1000)  # with a valid signature
    strangers_per_address: Rate = Rate(5, 100)  # without a recently accepted signer, unsigned ones included
    lookups: Rate = Rate(20, 300)  # chain calls for signers that were not accepted recently
    lookups_per_address: Rate = Rate(2, 120)
    check_slots: int = max(2, os.cpu_count() or 1)  # checks of scripts at once; one slot is for small definitions
    checks_waiting_per_uploader: int = 64
    check_wait_s: float = 8.0  # before the client must retry
    definitions_per_customer: int = 5000  # of jobs that are not over
    notices_per_job: int = 100  # above it the oldest are deleted
    revocations_per_wallet: int = 100  # session keys whose session has not ended


def source_of(host: str | None) -> str:
    """Return the source address of a host: an IPv4 address, the /64 of an IPv6 address, or the text itself."""
    text = (host or "")[:LONGEST_SOURCE]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))


def source_in(scope: Scope) -> str:
    """Return the source address of a request."""
    client = scope.get("client")
    return source_of(client[0] if client else None)


class Buckets:
    """A token bucket per key. The bucket of a key that was not seen recently is full."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, amount: int = 1) -> bool:
        """Take `amount` tokens. Returns False, and takes none, if the bucket holds fewer."""
        level = self._level(key)
        taken = level >= amount
        self._levels[key] = (level - amount if taken else level, self._clock())
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_KEYS:
            self._levels.popitem(last=False)
        return taken

    def require(self, key: str, amount: int = 1, what: str = "too many requests") -> None:
        """Take `amount` tokens. Refuses with 429, and the time until the next token, if the bucket holds fewer."""
        if not self.take(key, amount):
            wait_s = max(1, int((1 - self._level(key)) / self._rate.per_s + 1))
            raise Refusal(429, f"{what}; try again in {wait_s} s", retry_after_s=wait_s)

    def _level(self, key: str) -> float:
        level, at = self._levels.get(key, (self._rate.burst, 0.0))
        return min(self._rate.burst, level + (self._clock() - at) * self._rate.per_s) if at else level


class Shares:
    """Amounts held per key now, limited per key and in total."""

    def __init__(self, per_key: int, total: int) -> None:
        self._per_key, self._total = per_key, total
        self._held: Counter[str] = Counter()
        self.all_held = 0

    def take(self, key: str, amount: int = 1) -> bool:
        """Hold `amount` more. Returns False, and holds nothing more, above a limit."""
        if self._held[key] + amount > self._per_key or self.all_held + amount > self._total:
            return False
        self._held[key] += amount
        self.all_held += amount
        return True

    def give_back(self, key: str, amount: int = 1) -> None:
        self._held[key] -= amount
        self.all_held -= amount
        if self._held[key] <= 0:
            del self._held[key]

    @contextmanager
    def hold(self, key: str, amount: int = 1) -> Iterator[bool]:
        """Hold `amount` while the context lasts. Yields whether the limits allow it."""
        taken = self.take(key, amount)
        try:
            yield taken
        finally:
            if taken:
                self.give_back(key, amount)

    @contextmanager
    def lend(self, key: str) -> Iterator[None]:
        """Release one held slot while the context lasts. It is taken again at the end, even above a limit."""
        self.give_back(key)
        try:
            yield
        finally:
            self._held[key] += 1
            self.all_held += 1


class Pace:
    """Limits bytes per second by waiting."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._level, self._at = burst, clock()

    async def wait(self, amount: int) -> None:
        """Return when `amount` more may pass."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._per_s) - amount
        self._at = now
        if self._level < 0:
            await asyncio.sleep(-self._level / self._per_s)
