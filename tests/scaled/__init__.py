"""Tests of the grid with several Prefect servers."""
