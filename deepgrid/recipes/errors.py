"""The error of a remote call."""

from __future__ import annotations

from deepgrid.errors import LINES, GridError
from deepgrid.plain_text import plain


class RemoteError(GridError):
    """A remote call failed, or its result did not arrive.

    Attributes:
        kind: Name of the exception's class on the node; empty if there is no result.
        trace: The traceback on the node, without control characters; empty if there is none. The cluster wrote it.
    """

    def __init__(self, message: str, *, kind: str = "", trace: str = "", next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.kind = plain(kind)
        self.trace = plain(trace, keep=LINES)
