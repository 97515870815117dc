"""Reports conditions that need a person to Prefect: an event when one begins, and one when it is over.

`orchestration.automations` makes notifications of the events. Events that Prefect does not get are lost: metrics and
alerts of Prometheus do not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from prefect.events import emit_event

LOW_ON_GAS, DEGRADED = "deepgrid.low-on-gas", "deepgrid.degraded"
OVER = ".over"
BOOKS_DIFFER = "BooksDiffer"  # the name of a failed run's state, and the end of its event's name


class Conditions:
    """The conditions of one resource, such as `provider alpha`. `known` are reasons of an earlier process."""

    def __init__(self, kind: str, name: str, known: Mapping[str, str] | None = None) -> None:
        self._resource = {"prefect.resource.id": f"deepgrid.{kind}.{name}", "prefect.resource.name": f"{kind} {name}"}
        self._reasons = dict(known or {})

    def tell(self, condition: str, reason: str) -> None:
        """Say why the condition holds, or by an empty reason that it does not. Only a change makes an event."""
        before, self._reasons[condition] = self._reasons.get(condition, ""), reason
        if bool(before) != bool(reason):
            event = condition if reason else f"{condition}{OVER}"
            emit_event(event, resource=self._resource, payload={"reason": reason or before})
