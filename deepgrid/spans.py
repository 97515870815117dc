"""Spans of a trace around what leaves the process: commands over SSH, requests to the chain's node.

They cost nothing until a process has a tracer (`runtime.tracing`). Prefect's spans of flow and task runs enclose them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Span = Callable[[str], AbstractContextManager[object]]

_spans: list[Span] = []


def span(name: str) -> AbstractContextManager[object]:
    """A span of this name, inside the current one. Its name must hold no secret and no argument of a user."""
    return _spans[-1](name) if _spans else nullcontext()


def make_spans_by(tracer: Span) -> None:
    """From now on, spans are those of this tracer."""
    _spans[:] = [tracer]
