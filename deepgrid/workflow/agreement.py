"""Compares the resources of the definition with those that the customer pays for on chain."""

from __future__ import annotations

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.workflow.models import Definition


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
