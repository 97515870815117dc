"""Types of GPUs as labels, and the type that a job names.

A cluster has a label per type, with the number of its GPUs: `gpu.a100=8`. A job names a type by a condition on that
label, such as `gpu.a100>=1`, or by the label `gpu=a100` of clusters with one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import JobDefinition, Label

GPU = "gpu"
_PREFIX = f"{GPU}."


def is_gpu_type(key: str) -> bool:
    """Return whether a label of this key counts the GPUs of a type."""
    return key.startswith(_PREFIX)


def with_gpu_types(labels: Sequence[Label], counts: Mapping[str, int]) -> tuple[Label, ...]:
    """Return the labels with those of these GPUs, by Slurm's types, in place of earlier ones."""
    found = (Label(f"{_PREFIX}{kind.lower()}", str(count)) for kind, count in counts.items())
    return (*(label for label in labels if not is_gpu_type(label.key)), *found)


def named_type(definition: JobDefinition, counts: Mapping[str, int]) -> str:
    """Return Slurm's name of the GPU type that the job names; empty if it names none, or several."""
    conditions = [(one.key.lower(), one.value.lower()) for one in definition.uses]
    conditions += [(one.key.lower(), one.value.lower()) for one in definition.affinity]
    named = {value for key, value in conditions if key == GPU}
    keys = {key for key, _ in conditions}
    found = [kind for kind in counts if kind.lower() in named or f"{_PREFIX}{kind.lower()}" in keys]
    return found[0] if definition.gpus and len(found) == 1 else ""
