"""Whether the resources that a customer pays for on chain are those of the definition."""

from __future__ import annotations

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.workflow.models import Definition


def verify_resources(job: Definition, on_chain: JobDefinition) -> None:
    """Raise InputError that names every figure in which the definition and the chain differ."""
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
