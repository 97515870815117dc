"""How often a node is asked: requests wait while it limits them, for as long as it wishes within reason."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass
class Pace:
    """The pauses that a node's rate limit asks for, common to all requests of one connection.

    Attributes:
        patience_s: For how long a refused request is repeated.
        first_pause_s: Pause after the first refusal without a `Retry-After`. It doubles with each further one.
        longest_pause_s: Maximum pause, even if the node's `Retry-After` asks for more.
    """

    patience_s: float = 30.0
    first_pause_s: float = 0.25
    longest_pause_s: float = 20.0
    _quiet_until: float = field(default=0.0, init=False)

    async def turn(self) -> None:
        """Wait while the node wants to be left alone."""
        while True:
            left_s = self._quiet_until - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            await asyncio.sleep(left_s + random.uniform(0, min(left_s, 1.0) / 4))  # not all of them at once

    def hold(self, failures: int, retry_after_s: float | None) -> None:
        """Make all requests wait after a refusal. `failures` refusals of the same request came before."""
        pause_s = self.first_pause_s * 2 ** min(failures, 10) if retry_after_s is None else retry_after_s
        now = asyncio.get_running_loop().time()
        self._quiet_until = max(self._quiet_until, now + min(pause_s, self.longest_pause_s))


def retry_after_s(header: str | None) -> float | None:
    """Return the seconds that a `Retry-After` asks to wait: a number or a date. None without a readable one."""
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
