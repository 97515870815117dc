"""Whether a cluster meets the needs of a job: its nodes hold the tasks, its labels satisfy the conditions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "=": operator.eq,
    ">=": operator.ge, ">": operator.gt, "!=": operator.ne,
}  # fmt: skip


def misfit(definition: JobDefinition, hardware: Hardware) -> str:
    """Why the job can never run on this hardware; empty when it can.

    Tasks are indivisible; GPUs are for the whole job. Node n hosts min(floor(cpus / cpusPerTask),
    floor(mem / task memory)) tasks. The GPUs must be on nodes that host tasks; the number of these nodes
    is at most the number of tasks.
    """
    cpus = definition.ntasks * definition.cpus_per_task
    if cpus > sum(hardware.cpus_per_node):
        return f"asks for {cpus} CPUs, it has {sum(hardware.cpus_per_node)}"
    if definition.gpus > sum(hardware.gpus_per_node):
        return f"asks for {definition.gpus} GPUs, it has {sum(hardware.gpus_per_node)}"
    task_mem = definition.cpus_per_task * definition.mem_per_cpu_mb
    if definition.ntasks * task_mem > sum(hardware.mem_per_node_mb):
        return f"asks for {definition.ntasks * task_mem} MB of memory, it has {sum(hardware.mem_per_node_mb)} MB"
    slots = [
        min(node_cpus // definition.cpus_per_task, node_mem // task_mem if task_mem else definition.ntasks)
        for node_cpus, node_mem in zip(hardware.cpus_per_node, hardware.mem_per_node_mb, strict=True)
    ]
    if sum(slots) < definition.ntasks:
        return (
            f"asks for {definition.ntasks} tasks of {definition.cpus_per_task} CPUs and {task_mem} MB, "
            f"its nodes hold {sum(slots)}"
        )
    hosting = sorted((gpus for gpus, n in zip(hardware.gpus_per_node, slots, strict=True) if n), reverse=True)
    reachable = sum(hosting[: definition.ntasks])
    if definition.gpus > reachable:
        return f"asks for {definition.gpus} GPUs for {definition.ntasks} tasks, on its nodes those reach {reachable}"
    return ""


def unmet(labels: Sequence[Label], uses: Sequence[Label], affinity: Sequence[Affinity]) -> list[str]:
    """The conditions that `labels` do not satisfy, as the customer wrote them; empty when all hold."""
    conditions = [Affinity(use.key, "==", use.value) for use in uses] + list(affinity)
    return [f"{c.key}{c.op}{c.value}" for c in conditions if not _holds(labels, c)]


def _holds(labels: Sequence[Label], condition: Affinity) -> bool:
    """A missing label satisfies no condition. Of several labels with the same key, any may match."""
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
