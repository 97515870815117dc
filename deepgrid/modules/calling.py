"""The call of a module by a step: its arguments, and whether job and module fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from deepgrid.modules.gotemplate import Part
from deepgrid.workflow import Definition, EnvVar, Step
from deepgrid.workflow.faults import faults_of
from deepgrid.workflow.models import JobResources, Module, ModuleInput, StepUse
from deepgrid.workflow.yaml_nodes import Path

Fault = tuple[Path, str]  # place below `use`, and sentence


class WrongArguments(Exception):
    """Arguments do not fit the module: place below `use`, and sentence, of each fault."""

    def __init__(self, found: list[Fault]) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class Call:
    """The use of a module by a step of a job.

    `handed` are the steps that the caller passes, with their modules resolved. With `ignore_unknown`, unknown fields
    and arguments are warnings.
    """

    job: Definition
    step: Step
    use: StepUse
    handed: tuple[Step, ...]
    ignore_unknown: bool = False

    def check_arguments(self, inputs: Sequence[ModuleInput]) -> None:
        """Raise WrongArguments for arguments that are unknown or repeated."""
        found = list(_repeated_arguments(self.use))
        found += () if self.ignore_unknown else _unknown(self.use, inputs)
        if found:
            raise WrongArguments(sorted(found))

    def advice(self, inputs: Sequence[ModuleInput]) -> Iterator[Fault]:
        """Yield a warning for each input without a value, and each argument that is ignored."""
        yield from ((place, f"{what}; it is ignored") for place, what in _unknown(self.use, inputs))
        given = {argument.key for argument in self.use.args}
        for one in inputs:
            if one.default is None and one.key not in given:
                purpose = f" ({one.description})" if one.description else ""
                yield (), f"the input {one.key}{purpose} is not given, so it is unset"

    def arguments(self, inputs: Sequence[ModuleInput]) -> tuple[EnvVar, ...]:
        """Return the values of all inputs that are given or have a default."""
        given = {argument.key: argument.value for argument in self.use.args}
        values = {one.key: given.get(one.key, one.default) for one in inputs}
        return tuple(EnvVar(key=key, value=value) for key, value in values.items() if value is not None)

    def jinja_values(self, inputs: Sequence[ModuleInput]) -> dict[str, Any]:
        """Return values for a Jinja template: the inputs, the calling step and the job's resources, nothing else."""
        dumped = [one.model_dump(mode="json", by_alias=True, exclude_defaults=True) for one in self.handed]
        called = {"source": self.use.source, "exportEnvAs": self.use.export_env_as, "steps": dumped}
        step = {"name": self.step.name, "dependsOn": list(self.step.depends_on), "if": self.step.if_, "use": called}
        return {
            "inputs": {one.key: one.value for one in self.arguments(inputs)},
            "step": step,
            "job": {"resources": self.job.resources.model_dump(mode="json", by_alias=True)},
        }

    def go_values(self) -> Part:
        """Return values for a template of Go's syntax: the calling step, and fields of the job that hold no secret."""
        use = self.use.model_copy(update={"steps": self.handed})
        own = {"Name": self.step.name, "DependsOn": self.step.depends_on, "If": self.step.if_, "Use": use}
        kinds = {"Run": None, "For": None, "Launch": None, "Steps": ()}  # a step that uses a module has none of them
        job = {
            "Resources": self.job.resources,
            "EnableLogging": self.job.enable_logging,
            "InputMode": self.job.input_mode,
            "ContinuousOutputSync": self.job.continuous_output_sync,
            "VirtualNetworks": self.job.virtual_networks,
        }
        return Part("", {"Job": Part(".Job", job), "Step": Part(".Step", own | kinds)})


def _unknown(use: StepUse, inputs: Sequence[ModuleInput]) -> Iterator[Fault]:
    known = [one.key for one in inputs]
    for number, argument in enumerate(use.args):
        if argument.key not in known:
            near = difflib.get_close_matches(argument.key, known, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]}?)" if near else f"; it has {', '.join(known) or 'none'}"
            yield ("args", number, "key"), f"the module has no input {argument.key}{hint}"


def _repeated_arguments(use: StepUse) -> Iterator[Fault]:
    given: set[str] = set()
    for number, argument in enumerate(use.args):
        if argument.key in given:
            yield ("args", number, "key"), f"{argument.key} is given twice"
        given.add(argument.key)


def faults_of_call(job: Definition, use: StepUse, module: Module) -> Iterator[Fault]:
    """Yield resources that are too small for the module, and outputs whose prefixed names are invalid."""
    for name in JobResources.model_fields:
        least, has = getattr(module.minimum_resources, name), getattr(job.resources, name)
        if has < least:
            yield (), f"the module needs at least {least} {JobResources.model_fields[name].alias}, the job has {has}"
    for output in module.outputs if use.export_env_as else ():
        try:
            EnvVar(key=f"{use.export_env_as}_{output.key}", value="")
        except ValidationError as error:
            what = next(faults_of(error, EnvVar))[1]
            yield ("exportEnvAs",), f"turns the output {output.key} into a name that {what}"
