"""Errors of a node as errors of our own classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from deepgrid.errors import ChainError

BUSY_CODES = (-32005, -32016, -32097, 429)  # rate and resource limits of the common nodes
BUSY = ("rate limit", "too many requests")
OVERLOADED = ("internal error", "internal server error")
# A node that keeps few states may drop one between the arrival of a request and its answer. A member of a pool that
# lags behind does not have the block yet.
LOST_STATE = (
    "blockoutofrange",
    "header not found",
    "missing trie node",
    "unknown block",
    "block not found",
    "invalid block tag",
)
# Refusals of eth_getLogs, for which nodes also use the code of a rate limit: the blocks hold too many logs, or there
# are too many blocks.
MANY_LOGS = ("results", "response size", "response exceed", "too many logs")
MANY_BLOCKS = ("block range", "range is too", "range too", " blocks")

DOOR_CLOSED = (401, 403, 404, 405)
TOO_MANY_REQUESTS, UNAVAILABLE = 429, 503

Request: TypeAlias = tuple[str, Sequence[Any]]
Asked: TypeAlias = Callable[[int, ChainError | None], None]  # number of requests in one exchange, and its error


class NodeRefused(ChainError):
    """The node answered with an error of its own: `code`, `reason`, and the revert `data` of a call if any."""

    transient = False

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        code = error.get("code")
        self.method = method
        self.code = code if isinstance(code, int) else 0
        self.reason = str(error.get("message", ""))[:300]
        self.data = _revert_data(error.get("data"))
        passing = self.is_busy or (not self.wants_shorter_pages and self.says(*OVERLOADED, *LOST_STATE))
        super().__init__(f"The chain's node refused {method}: {self.reason}.", transient=passing)

    @property
    def is_busy(self) -> bool:
        """Whether the node limits how often it may be asked, so that the same request may succeed after a pause."""
        return not self.wants_shorter_pages and (self.code in BUSY_CODES or self.says(*BUSY))

    @property
    def holds_many_logs(self) -> bool:
        """Whether the node refused logs because they are too many, in whatever number of blocks."""
        return self.method == "eth_getLogs" and self.says(*MANY_LOGS)

    @property
    def wants_shorter_pages(self) -> bool:
        """Whether the node refused logs because they are too many, or of too many blocks."""
        return self.holds_many_logs or (self.method == "eth_getLogs" and self.says(*MANY_BLOCKS))

    def says(self, *words: str) -> bool:
        """Return whether the reason contains any of these words, which are in lower case."""
        return any(one in self.reason.lower() for one in words)


class HttpRefused(ChainError):
    """The node, or what is in front of it, answered with an HTTP status of failure.

    `retry_after_s` is the pause that it asks for, None if it asks for none.
    """

    def __init__(self, host: str, status: int, retry_after_s: float | None) -> None:
        self.status = status
        self.retry_after_s = retry_after_s
        super().__init__(
            f"The chain's node at {host} answered with HTTP status {status}.", transient=status not in DOOR_CLOSED
        )

    @property
    def is_busy(self) -> bool:
        """Whether the same request may succeed after a pause."""
        return self.status == TOO_MANY_REQUESTS or (self.status == UNAVAILABLE and self.retry_after_s is not None)


@contextmanager
def making_sense(of: str) -> Iterator[None]:
    """Turn errors from an answer of unexpected shape into a ChainError (transient). `of` names the answer."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise ChainError(f"The chain's node sent an answer of unexpected shape for {of}.") from None


def _revert_data(data: object) -> bytes | None:
    """Revert data of a call. Nodes wrap it in different ways."""
    if isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, str):
        return None
    text = data.removeprefix("Reverted ").removeprefix("0x")
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
