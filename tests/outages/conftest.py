"""A second whole grid for tests that change, stop or kill its parts. They run in parallel with `tests/grid`."""

from __future__ import annotations

from tests.grid.conftest import customer, grid, prefect_api

__all__ = ["customer", "grid", "prefect_api"]
