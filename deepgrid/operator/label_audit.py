"""An audit of a cluster's measured labels: a paid job that measures one node, and its result against the claims. Pure.

Before it runs, an audit cannot be distinguished from a customer's job. A cluster that knows one by its script could
still print what its labels say: an audit finds wrong and outdated labels, not a determined liar.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from deepgrid.benchmark import hpl
from deepgrid.benchmark.labels import labels_of, number, values_of
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Hardware, Provider

TOLERANCE_PERCENT = 25
MEMORY_SHARE = 0.25  # of the order of the largest matrix; HPL shares the node with the rest of hpcc
_FACTS = ("arch", "cpu", "cpu.microarch", "os")
_LEAST_MB = 100  # per CPU; hpcc and its libraries

# mpirun must not start the ranks by Slurm: they are in a job's step already.
_RUN = """\
unset $(env | sed -n 's/^\\(SLURM[A-Z_0-9]*\\|PMI[A-Z_0-9]*\\)=.*/\\1/p')
cd "$(mktemp -d)"
printf %s {file} > hpccinf.txt
export OMP_NUM_THREADS={threads}
mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n {ranks} hpcc
sed -n '/^Begin of HPL section/,/^End of HPL section/p' hpccoutf.txt"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A measured label as the cluster claims it, and as the audit found it."""

    key: str
    claimed: str
    found: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """The job that audits one node of a provider's cluster."""

    provider: Provider
    problem: hpl.Problem

    @property
    def workflow(self) -> dict[str, Any]:
        """Return the job as a workflow: one task with all CPUs of the smallest node."""
        from deepgrid.benchmark import machine  # archspec loads slowly

        problem = self.problem
        cpus = problem.p * problem.q * problem.cpus_per_rank
        needed = int(8 * problem.n**2 * 3 / 1e6 / cpus) + _LEAST_MB
        run = _RUN.format(
            file=shlex.quote(problem.input_file()), threads=problem.cpus_per_rank, ranks=problem.p * problem.q
        )
        script = f"{machine.script().removeprefix('#!/bin/bash')}\necho '== end'\nset -e\n{run}"
        return {
            "enableLogging": True,
            "resources": {"tasks": 1, "cpusPerTask": cpus, "memPerCpu": needed, "gpus": 0},
            "steps": [{"name": "audit", "run": {"command": script}}],
        }


def audit_of(provider: Provider, seconds: int, cpus_per_rank: int = 1) -> Audit:
    """Return the audit of a provider, whose problem takes about `seconds` at the claimed rate, three times.

    Raises InputError when the cluster claims nothing that this audit can check.
    """
    claimed = values_of(provider.labels)
    rate = _figure(claimed.get(hpl.KEY, ""))
    if not rate or claimed.get("compute.benchmark", "hpl") != "hpl":
        raise InputError(
            f"The provider {provider.address} claims no rate of its CPUs.",
            next_step="An audit compares the label compute.gflops where compute.benchmark is hpl.",
        )
    hardware = provider.hardware
    smallest = Hardware((0,), (min(hardware.cpus_per_node),), (min(hardware.mem_per_node_mb),))
    settings = BenchmarkSettings(
        single_node=True,
        memory_share=MEMORY_SHARE,
        hpl_seconds=seconds,
        gflops_per_cpu=rate / sum(hardware.cpus_per_node),
        cpus_per_rank=min(cpus_per_rank, *smallest.cpus_per_node),
        block_size=64,
    )
    return Audit(provider, replace(hpl.problem_for(smallest, settings), alone=False))


def findings(audit: Audit, output: str) -> tuple[Finding, ...]:
    """Compare the job's output with the labels. Raises SlurmError when it has no result.

    One node should reach its share of the cluster's rate, less the tolerance. More is no fault: several nodes together
    lose time on the network.
    """
    from deepgrid.benchmark import machine  # archspec loads slowly

    claimed, hardware = values_of(audit.provider.labels), audit.provider.hardware
    rates, _ = hpl.parse(output)
    share = _figure(claimed[hpl.KEY]) * min(hardware.cpus_per_node) / sum(hardware.cpus_per_node)
    enough = rates.value >= share * (1 - TOLERANCE_PERCENT / 100)
    facts = values_of(labels_of(machine.parse(output.partition("== end")[0])))
    same = [
        Finding(key, claimed[key], facts.get(key, ""), claimed[key] == facts.get(key, ""))
        for key in _FACTS
        if key in claimed
    ]
    return (*same, Finding(f"{hpl.KEY} per node", number(share), number(rates.value), enough))


def disagreements(found: Iterable[Finding]) -> tuple[str, ...]:
    """Return the keys of labels that the audit does not confirm."""
    return tuple(one.key for one in found if not one.agrees)


def _figure(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 < value < 1e12 else 0.0
