"""Tests of the grid with several Prefect servers, and some of the whole grid, which run in parallel to `tests/grid`."""
