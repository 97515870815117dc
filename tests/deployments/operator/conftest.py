"""The fixtures of an operator's session, also for the process built on it."""

from tests.operator.conftest import grid, office

__all__ = ["grid", "office"]
