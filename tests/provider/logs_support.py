"""A log service in memory, which keeps one log."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.errors import ServiceError
from deepgrid.services.messages import LogPosition


class Service:
    """Keeps a log by position, as the log service does. The first `outages` calls fail."""

    def __init__(self, outages: int = 0, most: int = 2**53) -> None:
        self.log = bytearray()
        self.at = LogPosition(most=most)
        self.closed = False
        self.outages = outages

    async def ship_log(
        self, job_id: int, claimed_at: int, at: LogPosition, data: bytes, after: LogPosition, *,
        pending: int, final: bool,
    ) -> LogPosition:  # fmt: skip
        if self.outages:
            self.outages -= 1
            raise ServiceError("The log service is away.")
        assert pending >= 0
        if at.offset == len(self.log):
            assert after.offset == at.offset + len(data)
            self.log += data
            self.at = replace(after, most=self.at.most)
            self.closed = self.closed or final
        return self.at
