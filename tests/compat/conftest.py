"""Fixtures: the services with the protocols of existing clients, on a free port, with a fake chain."""

from __future__ import annotations

from tests.services.conftest import grid, start

__all__ = ["grid", "start"]
