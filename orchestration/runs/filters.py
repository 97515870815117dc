"""Filters of Prefect's API for what this project looks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterId,
    FlowRunFilterIdempotencyKey,
    FlowRunFilterState,
    FlowRunFilterStateName,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import StateType

UNDER_WAY = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)


def runs_with(
    *,
    ids: Iterable[UUID] | None = None,
    keys: Iterable[str] | None = None,
    states: Iterable[StateType] | None = None,
    state_names: Iterable[str] | None = None,
    ended_before: datetime | None = None,
) -> FlowRunFilter:
    """Return a filter for runs that meet all conditions. `keys` are idempotency keys."""
    kinds = None if states is None else FlowRunFilterStateType(any_=list(states))
    named = None if state_names is None else FlowRunFilterStateName(any_=list(state_names))
    return FlowRunFilter(
        id=None if ids is None else FlowRunFilterId(any_=list(ids)),
        idempotency_key=None if keys is None else FlowRunFilterIdempotencyKey(any_=list(keys)),
        state=FlowRunFilterState(type=kinds, name=named) if kinds or named else None,
        end_time=None if ended_before is None else FlowRunFilterEndTime(before_=ended_before),
    )


def flows_named(names: Iterable[str]) -> FlowFilter:
    """Return a filter for flows with one of these names."""
    return FlowFilter(name=FlowFilterName(any_=list(names)))


def in_pool(work_pool: str) -> WorkPoolFilter:
    """Return a filter for runs or deployments of this pool."""
    return WorkPoolFilter(name=WorkPoolFilterName(any_=[work_pool]))
