"""The time at Prefect's server. Its clock decides which runs are due, not this machine's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from prefect.client.orchestration import PrefectClient

REFRESH_S = 60.0
ROUNDING = timedelta(seconds=1)  # the server's timestamp has whole seconds; a due run must not seem early


class ServerClock:
    """The server's clock, read once per minute. In between, this machine's monotonic clock counts the time."""

    def __init__(self) -> None:
        self._server_time: datetime | None = None
        self._read_at = 0.0

    async def now(self, client: PrefectClient) -> datetime:
        """The server's time, or up to one second later. Raises the client's errors when the server does not answer."""
        if self._server_time is None or time.monotonic() - self._read_at > REFRESH_S:
            date = (await client.hello()).headers.get("date")
            self._server_time = parsedate_to_datetime(date) + ROUNDING if date else datetime.now(UTC)
            self._read_at = time.monotonic()
        return self._server_time + timedelta(seconds=time.monotonic() - self._read_at)
