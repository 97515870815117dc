"""Prefect gets an event when a condition begins, and one when it is over, and none in between."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import grid_events
from orchestration.grid_events import DEGRADED, LOW_ON_GAS, Conditions

RESOURCE = {"prefect.resource.id": "deepgrid.provider.alpha", "prefect.resource.name": "provider alpha"}


def test_only_a_change_makes_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []

    def emit(event: str, resource: dict[str, str], payload: dict[str, Any]) -> None:
        assert resource == RESOURCE
        sent.append((event, payload["reason"]))

    monkeypatch.setattr(grid_events, "emit_event", emit)
    alpha = Conditions("provider", "alpha")
    for reason in ("", "slurmctld is silent.", "slurmctld is silent for longer.", "", ""):
        alpha.tell(DEGRADED, reason)
    alpha.tell(LOW_ON_GAS, "Ten jobs are left.")
    assert sent == [
        (DEGRADED, "slurmctld is silent."),
        (f"{DEGRADED}.over", "slurmctld is silent for longer."),
        (LOW_ON_GAS, "Ten jobs are left."),
    ]
