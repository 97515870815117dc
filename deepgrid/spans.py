"""Spans of a trace around what leaves the process: commands over SSH, requests to the chain's node.

They cost nothing until a process has a tracer (`orchestration.tracing`). Prefect's spans of flow and task runs enclose
them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Span = Callable[[str], AbstractContextManager[object]]

_tracer: Span | None = None


def span(name: str) -> AbstractContextManager[object]:
    """Return a span of this name, inside the current one. Its name must hold no secret and no argument of a user."""
    return _tracer(name) if _tracer is not None else nullcontext()


def set_tracer(tracer: Span | None) -> None:
    """Use this tracer for spans from now on; None for no spans."""
    global _tracer  # noqa: PLW0603 - one tracer per process
    _tracer = tracer
