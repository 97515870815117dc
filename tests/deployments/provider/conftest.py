"""Fixtures for a provider's session and for the processes built on it."""

from tests.provider.conftest import approved, box, folder, grid, key, scene

__all__ = ["approved", "box", "folder", "grid", "key", "scene"]
