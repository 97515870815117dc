"""Whether a cluster meets the needs of a job: its nodes hold the tasks, its labels satisfy the conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from deepgrid.lifecycle.feature_labels import FEATURES
from deepgrid.lifecycle.gpu_types import enough_of_type
from deepgrid.lifecycle.job import Affinity, Asked, Hardware, Label

_ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, "==": eq, "=": eq, ">=": ge, ">": gt, "!=": ne}


class Lack(IntEnum):
    """The things that hardware can lack for a job, in the order of the checks."""

    NOTHING = 0
    SENSE = 1  # the job asks for no task or no CPU
    CPUS = 2
    GPUS = 3
    MEMORY = 4
    TASKS = 5  # its nodes hold too few tasks
    REACH = 6  # too few GPUs on the nodes that hold tasks


def misfit(definition: Asked, hardware: Hardware) -> str:
    """Return why the job can never run on this hardware; empty when it can.

    Tasks are indivisible; GPUs are for the whole job. Node n hosts min(floor(cpus / cpusPerTask),
    floor(mem / task memory)) tasks. The GPUs must be on nodes that host tasks; the number of these nodes
    is at most the number of tasks.
    """
    return lack(definition, hardware)[1]


def lack(definition: Asked, hardware: Hardware) -> tuple[Lack, str]:
    """Return the first thing that the hardware lacks, and the same in words. See `misfit`."""
    if definition.ntasks < 1 or definition.cpus_per_task < 1:
        return Lack.SENSE, "asks for no task or no CPU"
    cpus = definition.ntasks * definition.cpus_per_task
    if cpus > sum(hardware.cpus_per_node):
        return Lack.CPUS, f"asks for {cpus} CPUs, it has {sum(hardware.cpus_per_node)}"
    if definition.gpus > sum(hardware.gpus_per_node):
        return Lack.GPUS, f"asks for {definition.gpus} GPUs, it has {sum(hardware.gpus_per_node)}"
    task_mem = definition.cpus_per_task * definition.mem_per_cpu_mb
    mem = sum(hardware.mem_per_node_mb)
    if definition.ntasks * task_mem > mem:
        return Lack.MEMORY, f"asks for {definition.ntasks * task_mem} MB of memory, it has {mem} MB"
    slots = [
        min(node_cpus // definition.cpus_per_task, node_mem // task_mem if task_mem else definition.ntasks)
        for node_cpus, node_mem in zip(hardware.cpus_per_node, hardware.mem_per_node_mb, strict=True)
    ]
    if sum(slots) < definition.ntasks:
        tasks = f"{definition.ntasks} tasks of {definition.cpus_per_task} CPUs and {task_mem} MB"
        return Lack.TASKS, f"asks for {tasks}, its nodes hold {sum(slots)}"
    hosting = sorted((gpus for gpus, n in zip(hardware.gpus_per_node, slots, strict=True) if n), reverse=True)
    reachable = sum(hosting[: definition.ntasks])
    if definition.gpus > reachable:
        tasks = f"{definition.gpus} GPUs for {definition.ntasks} tasks"
        return Lack.REACH, f"asks for {tasks}, on its nodes those reach {reachable}"
    return Lack.NOTHING, ""


def unmet(labels: Sequence[Label], uses: Sequence[Label], affinity: Sequence[Affinity], gpus: int = 0) -> list[str]:
    """Return the conditions that `labels` do not satisfy, as the customer wrote them; empty when all hold.

    `gpus` is the number of the job's GPUs: a cluster needs as many of a type that the job names.

    After a condition on a feature comes what it is: `storage.s3==true (s5cmd, for input and output over S3)`.
    """
    return [_with_explanation(c) for c in _unmet_conditions(labels, conditions(uses, affinity, gpus))]


def mismatch(labels: Sequence[Label], uses: Sequence[Label], affinity: Sequence[Affinity], gpus: int = 0) -> str:
    """Return which conditions the labels do not satisfy, and which values they have instead; empty when all hold.

    `gpus` is as for `unmet`.
    """
    absent, other = [], []
    for condition in _unmet_conditions(labels, conditions(uses, affinity, gpus)):
        values = [label.value for label in labels if label.key == condition.key]
        if not values or condition.key in FEATURES:
            absent.append(_with_explanation(condition))
        else:
            other.append(f"has {condition.key}={' and '.join(values)}, not {condition_text(condition)}")
    return "; ".join([*([f"has no label {', '.join(absent)}"] if absent else []), *other])


def _unmet_conditions(labels: Sequence[Label], wanted: Sequence[Affinity]) -> list[Affinity]:
    return [condition for condition in wanted if not _holds(labels, condition)]


def _with_explanation(condition: Affinity) -> str:
    """Return a condition as a customer writes it, and after a feature what it is."""
    words = FEATURES.get(condition.key)
    return f"{condition_text(condition)} ({words})" if words else condition_text(condition)


def conditions(uses: Sequence[Label], affinity: Sequence[Affinity], gpus: int = 0) -> list[Affinity]:
    """Return all conditions of a job with this many GPUs; `uses` are equalities."""
    asked = [Affinity(use.key, "==", use.value) for use in uses] + list(affinity)
    return [*asked, *enough_of_type(asked, gpus)]


def condition_text(condition: Affinity) -> str:
    """Return a condition as a customer writes it: `arch==amd64`."""
    return f"{condition.key}{condition.op}{condition.value}"


ORDERS = ("<", "<=", ">=", ">")


@dataclass(frozen=True, slots=True)
class LabelValue:
    """The value of a label: its text, and its number when it is one."""

    text: str
    number: Decimal | None

    @staticmethod
    def parse(text: str) -> LabelValue:
        """Any text is a value. Only finite decimal numbers count as numbers."""
        try:
            number = Decimal(text)
        except InvalidOperation:
            return LabelValue(text, None)
        return LabelValue(text, number if number.is_finite() else None)


def compare(offered: LabelValue, op: str, wanted: LabelValue) -> bool:
    """Return whether `offered op wanted` holds. They are compared as numbers if both are numbers, otherwise as text.

    A number and a text have no order, so no condition on it holds. An unknown `op` means equality.
    """
    if op in ("in", ":in:"):
        return wanted.text in offered.text
    order = _ORDER.get(op, _ORDER["=="])
    if offered.number is not None and wanted.number is not None:
        return order(offered.number, wanted.number)
    if (offered.number is None) != (wanted.number is None) and op in ORDERS:
        return False
    return order(offered.text, wanted.text)


def _holds(labels: Sequence[Label], condition: Affinity) -> bool:
    """Return whether the condition holds. A missing label satisfies no condition.

    Of several labels with the same key, any may match.
    """
    wanted = LabelValue.parse(condition.value)
    return any(
        compare(LabelValue.parse(label.value), condition.op, wanted) for label in labels if label.key == condition.key
    )
