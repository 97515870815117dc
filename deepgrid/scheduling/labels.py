"""Conditions on a provider's labels: every use and every affinity of a job must hold."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from deepgrid.lifecycle.job import Affinity, Label

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "=": operator.eq,
    ">=": operator.ge, ">": operator.gt, "!=": operator.ne,
}  # fmt: skip


def unmet(labels: Sequence[Label], uses: Sequence[Label], affinity: Sequence[Affinity]) -> list[str]:
    """The conditions that `labels` do not satisfy, as the customer wrote them; empty when all hold."""
    conditions = [Affinity(use.key, "==", use.value) for use in uses] + list(affinity)
    return [f"{c.key}{c.op}{c.value}" for c in conditions if not _holds(labels, c)]


def _holds(labels: Sequence[Label], condition: Affinity) -> bool:
    """A missing label satisfies nothing; of duplicate keys any may match."""
    return any(_compare(label.value, condition) for label in labels if label.key == condition.key)


def _compare(offered: str, condition: Affinity) -> bool:
    if condition.op in ("in", ":in:"):
        return condition.value in offered
    left, right = _number(offered), _number(condition.value)
    compare: Callable[[Any, Any], bool] = _ORDER.get(condition.op, _ORDER["=="])
    if left is not None and right is not None:
        return compare(left, right)
    return compare(offered, condition.value)


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
