"""The programs that measure a cluster: Slurm options, batch script and output parser of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.benchmark import hpl, machine, network, storage
from deepgrid.benchmark.labels import labels_of, number
from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Hardware
from deepgrid.sbatch import StoragePaths

ONE_CPU = ("--nodes=1", "--ntasks=1")


@dataclass(frozen=True, slots=True)
class Request:
    """A Slurm job: options of sbatch and a script."""

    options: Sequence[str]
    script: str


def request(program: Program, hardware: Hardware, paths: StoragePaths, settings: BenchmarkSettings) -> Request | None:
    """Return the Slurm job of `program`, for responding nodes; None when there is nothing to measure."""
    match program:
        case "machine":
            return Request(ONE_CPU, machine.script())
        case "hpl":
            problem = hpl.problem_for(hardware, settings)
            return Request(hpl.options(problem), hpl.script(problem, settings))
        case "network":
            if hardware.nodes < 2:
                return None
            return Request(network.options(hardware.nodes), network.script(hardware.nodes, settings))
        case "storage":
            return Request(ONE_CPU, storage.script(paths, settings))


def read(program: Program, output: str) -> Outcome:
    """Parse the program's output. Raises SlurmError when it has no result."""
    match program:
        case "machine":
            return Outcome(program, labels_of(machine.parse(output)))
        case "hpl":
            rate, which = hpl.parse(output)
            return Outcome(program, labels_of({hpl.KEY: number(rate), hpl.WHICH: which}))
        case "network":
            return _figures(program, network.parse(output))
        case "storage":
            figures, problems = storage.parse(output)
            said = "; ".join(f"{volume}: {problem}" for volume, problem in problems.items())
            if not figures:
                raise SlurmError(f"No volume could be measured. {said}")
            return _figures(program, figures, said)


def _figures(program: Program, figures: dict[str, float], problem: str = "") -> Outcome:
    return Outcome(program, labels_of({key: number(value) for key, value in figures.items()}), problem)
