"""Another whole grid, for tests that stop, pause or kill its parts. They run beside those of `tests/grid`."""

from __future__ import annotations

from tests.grid.conftest import customer, grid, prefect_api

__all__ = ["customer", "grid", "prefect_api"]
