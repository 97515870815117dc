"""Another whole grid, for the tests that stop, hold or kill its parts: they go beside those of `tests/grid`."""

from __future__ import annotations

from tests.grid.conftest import customer, grid, prefect_api

__all__ = ["customer", "grid", "prefect_api"]
