"""The installed wheel for the tests of this folder."""

from __future__ import annotations

from tests.wheel.support import installation

__all__ = ["installation"]
