"""The call of a module by a step: its arguments, and whether job and module fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from deepgrid.workflow import Definition, EnvVar, Step
from deepgrid.workflow.faults import faults_of
from deepgrid.workflow.models import JobResources, Module, ModuleInput, StepUse
from deepgrid.workflow.yaml_nodes import Path

Fault = tuple[Path, str]  # place below `use`, and sentence


def faults_of_arguments(use: StepUse, inputs: Sequence[ModuleInput]) -> Iterator[Fault]:
    """Arguments that are unknown or repeated."""
    known, given = [one.key for one in inputs], set()
    for number, argument in enumerate(use.args):
        if argument.key not in known:
            near = difflib.get_close_matches(argument.key, known, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]}?)" if near else f"; it has {', '.join(known) or 'none'}"
            yield ("args", number, "key"), f"the module has no input {argument.key}{hint}"
        elif argument.key in given:
            yield ("args", number, "key"), f"{argument.key} is given twice"
        given.add(argument.key)


def unset_inputs(use: StepUse, inputs: Sequence[ModuleInput]) -> Iterator[str]:
    """A warning for each input that has no value."""
    given = {argument.key for argument in use.args}
    for one in inputs:
        if one.default is None and one.key not in given:
            yield f"the input {one.key}{f' ({one.description})' if one.description else ''} is not given, so it is unset"


def faults_of_call(job: Definition, use: StepUse, module: Module) -> Iterator[Fault]:
    """Resources that are too small for the module, and outputs whose prefixed names are invalid."""
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


def arguments(use: StepUse, inputs: Sequence[ModuleInput]) -> tuple[EnvVar, ...]:
    """The values of all inputs that are given or have a default."""
    given = {argument.key: argument.value for argument in use.args}
    values = {one.key: given.get(one.key, one.default) for one in inputs}
    return tuple(EnvVar(key=key, value=value) for key, value in values.items() if value is not None)


def values_for(
    job: Definition, step: Step, use: StepUse, inputs: Sequence[ModuleInput], handed: Sequence[Step]
) -> dict[str, Any]:
    """Values for a module's template: the inputs, the calling step and the job's resources, nothing else."""
    dumped = [one.model_dump(mode="json", by_alias=True, exclude_defaults=True) for one in handed]
    called = {"source": use.source, "exportEnvAs": use.export_env_as, "steps": dumped}
    return {
        "inputs": {one.key: one.value for one in arguments(use, inputs)},
        "step": {"name": step.name, "dependsOn": list(step.depends_on), "if": step.if_, "use": called},
        "job": {"resources": job.resources.model_dump(mode="json", by_alias=True)},
    }
