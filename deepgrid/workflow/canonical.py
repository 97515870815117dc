"""The canonical bytes of a job definition, and their hash, which the chain stores.

Equal jobs have equal bytes: JSON with sorted keys, no spaces, in UTF-8, without fields that have their
default value.
"""

from __future__ import annotations

import json

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.lifecycle.definition_hash import MAX_BYTES, hash_definition
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.workflow.faults import dotted, faults_of
from deepgrid.workflow.models import Definition

__all__ = ["canonical", "from_canonical", "hash_definition", "verify_resources"]


def canonical(job: Definition) -> bytes:
    """Return the bytes that are hashed and stored. Raises InputError when they exceed 256 KiB."""
    values = job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    content = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    if len(content) > MAX_BYTES:
        raise InputError(f"the job definition is larger than {MAX_BYTES // 1024} KiB")
    return content


def from_canonical(content: bytes) -> Definition:
    """Return the inverse of `canonical`. Raises InputError for bytes that are not in canonical form."""
    if len(content) > MAX_BYTES:
        raise InputError(f"the job definition is larger than {MAX_BYTES // 1024} KiB")
    try:
        job = Definition.model_validate_json(content, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InputError("; ".join(f"{dotted(path)}: {what}" for path, what, _ in faults_of(error))) from None
    if canonical(job) != content:
        raise InputError("the job definition is not in canonical form")
    return job


def verify_resources(job: Definition, on_chain: JobDefinition) -> None:
    """Raise InputError, with every figure that differs between the definition and the chain."""
    resources = job.resources
    pairs = {
        "tasks": (resources.tasks, on_chain.ntasks),
        "cpusPerTask": (resources.cpus_per_task, on_chain.cpus_per_task),
        "memPerCpu": (resources.mem_per_cpu, on_chain.mem_per_cpu_mb),
        "gpus": (resources.gpus, on_chain.gpus),
    }
    differing = [f"{name} is {own} there and {paid} on chain" for name, (own, paid) in pairs.items() if own != paid]
    if differing:
        raise InputError(f"The job definition is not the one that was paid for: {', '.join(differing)}.")
