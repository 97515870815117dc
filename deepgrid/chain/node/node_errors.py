"""Errors of a node as errors of our own classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from deepgrid.errors import ChainError

BUSY_CODES = (-32005, -32016, -32097)  # rate and resource limits of the common nodes
OVERLOADED = ("rate limit", "too many requests", "internal error", "internal server error")
# A node that keeps few states may drop one between the arrival of a request and its answer.
LOST_STATE = ("blockoutofrange", "header not found", "missing trie node")

Request: TypeAlias = tuple[str, Sequence[Any]]
Asked: TypeAlias = Callable[[int, ChainError | None], None]  # number of requests in one exchange, and its error


class NodeRefused(ChainError):
    """The node answered with an error of its own: `code`, `reason`, and the revert `data` of a call if any."""

    transient = False

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        code = error.get("code")
        self.code = code if isinstance(code, int) else 0
        self.reason = str(error.get("message", ""))[:300]
        self.data = _revert_data(error.get("data"))
        passing = self.code in BUSY_CODES or self.says(*OVERLOADED, *LOST_STATE)
        super().__init__(f"The chain's node refused {method}: {self.reason}.", transient=passing)

    def says(self, *words: str) -> bool:
        """Return whether the reason contains any of these words, which are in lower case."""
        return any(one in self.reason.lower() for one in words)


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
