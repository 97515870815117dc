"""The bounds on what one source address, one signer and all together may use, and the counters that keep them."""

from __future__ import annotations

import ipaddress
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MOST_KEYS = 20_000  # that a table of buckets remembers; the longest unused go first
IPV6_PREFIX = 64  # what one subscriber has at the least
LONGEST_SOURCE = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """So many per second in the long run, and up to `burst` at once."""

    per_s: float
    burst: float


@dataclass(frozen=True)
class Limits:
    """What the services grant. Times are seconds, sizes bytes; an address is a source address (IPv6: its /64).

    Connections and requests that run:
        connections, connections_per_address: open at once. Beyond it the oldest that waits for a request is closed.
        head_within_s, head_bytes: for a request's head, from its first byte on.
        keep_alive_s: an idle connection is closed then. Longer than clients keep one (httpx: 5 s), or a request
            meets a connection that is being closed.
        body_within_s: for a request's body.
        answer_within_s: for a client to take an answer.
        running, running_per_address: requests that are being answered.
        body_bytes, body_bytes_per_address: bodies of requests that are being answered.
        followers, followers_per_address, followers_per_job: requests that wait for output.
    Rates:
        requests_per_address, requests_per_signer: all requests; a signer counts once the signature was verified.
        strangers_per_address: requests that claim no signer who was accepted lately, the unsigned ones among them.
        refusals_per_address: requests that were refused. Beyond it only who claims such a signer is heard.
        lookups, lookups_per_address: chain calls for signers who were not accepted lately.
    What is stored:
        definitions_per_customer: whose jobs are not over.
        notices_per_job: beyond it the oldest go.
    Checks of scripts:
        check_slots: at once, of which one is kept for small definitions.
        checks_waiting_per_uploader, check_wait_s: how many wait, and how long, before the client must try again.
    """

    connections: int = 1024
    connections_per_address: int = 256
    head_within_s: float = 10.0
    head_bytes: int = 32 * 1024
    keep_alive_s: int = 60
    body_within_s: float = 30.0
    answer_within_s: float = 60.0
    running: int = 512
    running_per_address: int = 128
    body_bytes: int = 256 * 1024 * 1024
    body_bytes_per_address: int = 64 * 1024 * 1024
    followers: int = 256
    followers_per_address: int = 64
    followers_per_job: int = 8
    requests_per_address: Rate = Rate(100, 1000)
    requests_per_signer: Rate = Rate(100, 1000)
    strangers_per_address: Rate = Rate(5, 100)
    refusals_per_address: Rate = Rate(2, 100)
    lookups: Rate = Rate(20, 300)
    lookups_per_address: Rate = Rate(2, 120)
    check_slots: int = max(2, os.cpu_count() or 1)
    checks_waiting_per_uploader: int = 64
    check_wait_s: float = 8.0
    definitions_per_customer: int = 5000
    notices_per_job: int = 100


def source_of(host: str | None) -> str:
    """What counts as one source address: an IPv4 address, the /64 of an IPv6 address, else the text itself."""
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


class Buckets:
    """A token bucket for each key. A key that was not seen lately has a full one."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, key: str) -> bool:
        """Whether a token is there."""
        return self._level(key) >= 1

    def take(self, key: str) -> bool:
        """Take a token; False when none is there."""
        level = self._level(key)
        taken = level >= 1
        self._levels[key] = (level - 1 if taken else level, self._clock())
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_KEYS:
            self._levels.popitem(last=False)
        return taken

    def wait_s(self, key: str) -> int:
        """Whole seconds until a token is there, at least 1."""
        return max(1, int((1 - self._level(key)) / self._rate.per_s + 1))

    def _level(self, key: str) -> float:
        level, at = self._levels.get(key, (self._rate.burst, 0.0))
        return min(self._rate.burst, level + (self._clock() - at) * self._rate.per_s) if at else level


class Shares:
    """How much of something each key holds at the moment, bounded for each key and in total."""

    def __init__(self, per_key: int, total: int) -> None:
        self._per_key, self._total = per_key, total
        self._held: Counter[str] = Counter()
        self.all_held = 0

    def take(self, key: str, amount: int = 1) -> bool:
        """Hold `amount` more; False, and nothing more held, beyond a bound."""
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
    def hold(self, key: str) -> Iterator[bool]:
        """Hold one while the context lasts; gives whether there was one."""
        taken = self.take(key)
        try:
            yield taken
        finally:
            if taken:
                self.give_back(key)
