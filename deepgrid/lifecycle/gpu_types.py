"""Types of GPUs as labels, and the type that a job names.

A cluster has a label per type, with the number of its GPUs: `gpu.a100=8`. A job names a type by a condition on that
label, such as `gpu.a100>=1`, or by the label `gpu=a100` of clusters with one type. `gpu!=a100` excludes a type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import Affinity, JobDefinition, Label

GPU = "gpu"
_PREFIX = f"{GPU}."
_EQUAL = ("==", "=")
_AT_LEAST = (*_EQUAL, ">=", ">")
_CONTAINS = ("in", ":in:")


def is_gpu_type(key: str) -> bool:
    """Return whether a label of this key counts the GPUs of a type."""
    return key.startswith(_PREFIX)


def with_gpu_types(labels: Sequence[Label], counts: Mapping[str, int]) -> tuple[Label, ...]:
    """Return the labels, with the labels of GPUs replaced according to Slurm's types."""
    found = (Label(f"{_PREFIX}{kind.lower()}", str(count)) for kind, count in counts.items())
    return (*(label for label in labels if not is_gpu_type(label.key)), *found)


def enough_of_type(affinity: Sequence[Affinity], gpus: int) -> tuple[Affinity, ...]:
    """Return the condition that a cluster has all GPUs of a job in the one type that the job names by `gpu.TYPE`."""
    keys = {one.key for one in affinity if is_gpu_type(one.key) and one.op in _AT_LEAST}
    added = [Affinity(key, ">=", str(gpus)) for key in keys]
    return tuple(added) if gpus and len(added) == 1 and added[0] not in affinity else ()


def named_type(definition: JobDefinition, counts: Mapping[str, int]) -> str:
    """Return Slurm's name of the GPU type that the job gets; empty for any type.

    That is the type that the job names. A job that names none and excludes some gets the most frequent other one.
    """
    if not definition.gpus:
        return ""
    asked = [Affinity(one.key.lower(), "==", one.value.lower()) for one in definition.uses]
    asked += [Affinity(one.key.lower(), one.op, one.value.lower()) for one in definition.affinity]
    excluded = {one.value for one in asked if one.key == GPU and one.op == "!="}
    left = [kind for kind in counts if kind.lower() not in excluded]
    named = [kind for kind in left if any(_names(one, kind.lower()) for one in asked)]
    if not named and len(left) < len(counts):
        return max(left, key=lambda kind: counts[kind], default="")
    return named[0] if len(named) == 1 else ""


def _names(condition: Affinity, kind: str) -> bool:
    if condition.key == f"{_PREFIX}{kind}":
        return condition.op in _AT_LEAST
    contains = condition.op in _CONTAINS and condition.value in kind
    return condition.key == GPU and (contains or (condition.op in _EQUAL and condition.value == kind))
