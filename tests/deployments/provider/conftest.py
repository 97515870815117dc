"""The fixtures of a provider's session, also for the processes built on it."""

from tests.provider.conftest import approved, box, folder, grid, key, scene

__all__ = ["approved", "box", "folder", "grid", "key", "scene"]
