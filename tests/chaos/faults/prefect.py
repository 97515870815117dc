"""Prefect's server and its people get in the way."""

from __future__ import annotations

from tests.chaos.fault import Fault

FAULTS: list[Fault] = []
