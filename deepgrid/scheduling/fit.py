"""Whether a job's tasks fit a cluster's nodes. Tasks are indivisible; GPUs are for the whole job."""

from __future__ import annotations

from deepgrid.lifecycle.job import Hardware, JobDefinition


def misfit(definition: JobDefinition, hardware: Hardware) -> str:
    """Why the job can never run on this hardware; empty when it can.

    Node n hosts min(floor(cpus / cpusPerTask), floor(mem / task memory)) tasks; the GPUs must be
    on the nodes that host tasks, of which there are at most as many as tasks.
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
