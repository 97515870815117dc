"""What one side of a tunnel sends and receives its messages by."""

from __future__ import annotations

from typing import Protocol


class TunnelSocket(Protocol):
    """Messages to and from the other side of a tunnel."""

    async def send(self, data: bytes) -> None:
        """Send a message. Waits while the other side does not read. Raises ConnectionError when it has left."""
        ...

    async def receive(self) -> bytes:
        """Return the next message; none when the other side has left."""
        ...

    async def close(self) -> None: ...
