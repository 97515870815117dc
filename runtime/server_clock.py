"""What time it is at Prefect's server: which runs are due is for its clock to say, not for this machine's."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from prefect.client.orchestration import PrefectClient

ASK_AGAIN_S = 60.0
WHOLE = timedelta(seconds=1)  # what the server tells has no fractions; what is due must not seem to come


class ServerClock:
    """The server's clock, heard once a minute and counted on in between; a jump of this machine's changes nothing."""

    def __init__(self) -> None:
        self._told: datetime | None = None
        self._heard_at = 0.0

    async def now(self, client: PrefectClient) -> datetime:
        """The time there, or up to a second later. Raises what the client raises when it does not answer."""
        if self._told is None or time.monotonic() - self._heard_at > ASK_AGAIN_S:
            date = (await client.hello()).headers.get("date")
            self._told = parsedate_to_datetime(date) + WHOLE if date else datetime.now(UTC)
            self._heard_at = time.monotonic()
        return self._told + timedelta(seconds=time.monotonic() - self._heard_at)
