"""Fixtures: the services with what existing clients speak, on a free port, with a fake chain."""

from __future__ import annotations

from tests.services.conftest import grid, start

__all__ = ["grid", "start"]
