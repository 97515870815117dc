"""The programs that measure a cluster: Slurm options, batch script and output parser of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deepgrid.benchmark import hpl, internet, machine, network, storage
from deepgrid.benchmark.figures import Samples
from deepgrid.benchmark.labels import labels_of, number
from deepgrid.benchmark.mpi import mpirun, mpirun_version
from deepgrid.benchmark.outcome import Evidence, Outcome
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Hardware
from deepgrid.sbatch import StoragePaths

ONE_CPU = ("--nodes=1", "--ntasks=1")
_ON_ALL_NODES: tuple[Program, ...] = ("hpl", "network")
_GROUPS: Mapping[Program, str] = {
    "hpl": "compute",
    "network": "network",
    "internet": "network.internet",
    "storage": "storage",
}


@dataclass(frozen=True, slots=True)
class _Reading:
    """The content of an output: samples and texts by label key, the program and its version, and failures."""

    samples: Mapping[str, Samples] = field(default_factory=dict)
    which: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A Slurm job: options of sbatch and a script. `parameters` say what it measures."""

    options: Sequence[str]
    script: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes and volumes to measure. `apptainer` runs benchmarks that come as images."""

    hardware: Hardware
    paths: StoragePaths
    apptainer: str = "apptainer"


def request(program: Program, site: Site, settings: BenchmarkSettings) -> Request | None:
    """Return the Slurm job of `program`; None when there is nothing to measure."""
    nodes = site.hardware.nodes
    match program:
        case "machine":
            return Request(ONE_CPU, machine.script())
        case "hpl":
            problem = hpl.problem_for(site.hardware, settings)
            return Request(hpl.options(problem), hpl.script(problem, settings), hpl.parameters(problem, settings))
        case "network" if nodes > 1 and not settings.single_node:
            script = network.script(nodes, settings, site.apptainer)
            return Request(network.options(nodes), script, {"mpirun": mpirun(settings)})
        case "storage":
            script = storage.script(nodes, site.paths, settings, site.apptainer)
            return Request(storage.options(nodes, settings), script, storage.parameters(settings))
        case "internet" if internet.is_wanted(settings):
            return Request(ONE_CPU, internet.script(settings), internet.parameters(settings))
    return None


def read(
    program: Program, output: str, settings: BenchmarkSettings, asked: Request | None = None, missing: int = 0
) -> Outcome:
    """Parse the output of the job `asked`. Raises SlurmError when it has no result.

    Each figure is the median of its samples. `missing` nodes of the partition did not take part.
    """
    reading = _reading(program, output)
    if reading.which == "hpl" and asked and asked.parameters.get("ranks") == hpl.ON_GPUS:
        reading = replace(reading, which="hpl-gpu")  # a vendor's HPL prints the same report as HPL on CPUs
    noisy = tuple(sorted(key for key, one in reading.samples.items() if one.is_noisy(settings.noisy_percent)))
    partial = missing > 0 and program in _ON_ALL_NODES
    evidence = Evidence(reading.samples, _parameters(reading, output, settings, asked, missing), output, noisy, partial)
    values = dict(reading.texts) | {key: number(one.value) for key, one in reading.samples.items()}
    if group := _GROUPS.get(program):
        values |= {f"{group}.benchmark": reading.which, f"{group}.remark": evidence.remark}
    return Outcome(program, labels_of(values), reading.problem, evidence)


def _reading(program: Program, output: str) -> _Reading:
    match program:
        case "machine":
            return _Reading(texts=machine.parse(output))
        case "hpl":
            rates, which = hpl.parse(output)
            return _Reading({hpl.KEY: rates}, which, hpl.versions(output))
        case "network":
            return _Reading(*network.parse(output), network.versions(output))
        case "storage":
            samples, problems, which = storage.parse(output)
            problem = "; ".join(f"{volume}: {why}" for volume, why in problems.items())
            if not samples:
                raise SlurmError(f"No volume could be measured. {problem}")
            return _Reading(samples, which, storage.versions(output), problem=problem)
        case "internet":
            return _Reading(*internet.parse(output), internet.versions(output))


def _parameters(
    reading: _Reading, output: str, settings: BenchmarkSettings, asked: Request | None, missing: int
) -> dict[str, str]:
    """Return what a reader needs to repeat the measurement: the problem, options and versions."""
    found: dict[str, str] = {}
    if asked:
        found |= asked.parameters
        found["sbatch"] = " ".join(asked.options)
    if reading.samples:
        found["program"] = reading.which
        found["samples"] = str(settings.samples)
    if missing:
        found["nodes that did not take part"] = str(missing)
    for name, text in (*mpirun_version(output).items(), *reading.versions.items()):
        found[f"version of {name}"] = text
    return found
