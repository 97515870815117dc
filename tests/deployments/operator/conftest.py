"""Fixtures for an operator's session and for the process built on it."""

from tests.operator.conftest import grid, office

__all__ = ["grid", "office"]
