"""Warnings about valid files: outdated fields, fields without effect, and habits from Slurm batch scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deepgrid.plain_text import character_name
from deepgrid.workflow.models.base import EnvVar, Model
from deepgrid.workflow.models.held_steps import held_steps
from deepgrid.workflow.models.job import Definition
from deepgrid.workflow.models.network import NetworkInterface
from deepgrid.workflow.models.running import ContainerRun, StepRun
from deepgrid.workflow.models.steps import Step, StepFor
from deepgrid.workflow.models.transport import TransportData
from deepgrid.workflow.models.walk import models_in
from deepgrid.workflow.slurm_scripts import advice_on_command
from deepgrid.workflow.yaml_nodes import Path

_ODD_QUOTE = re.compile(r"[\u2018\u201a-\u201f]|(?<!\w)\u2019|\u2019(?!\w)")  # an apostrophe in a word is fine


_CONSTANT = re.compile(r"(?!true\Z)[^\s$`=<>!&|()'\"]+")  # one word that bash does not expand


def advice_on(root: Model) -> Iterator[tuple[Path, str]]:
    """Yield each warning with its place. `advice_on_whole` yields the warnings that depend on all steps of a job."""
    for place, model in models_in(root):
        yield from _outdated_fields(place, model)
        yield from _set_again(place, model)
        if isinstance(model, Definition):
            yield from _idle_in_job(model)
        elif isinstance(model, StepFor) and not model.iterations:
            what = "neither items nor range" if model.items is None and model.range is None else "no iterations"
            yield place, f"has {what}, so it never runs"
        elif isinstance(model, ContainerRun):
            yield from _without_account(place, model)
        elif isinstance(model, StepRun):
            yield from _odd_quotes(place, model)
            yield from (((*place, "command"), what) for what in advice_on_command(model.command, model.shell))
        elif isinstance(model, Step):
            yield from _on_step(place, model)


def advice_on_whole(job: Definition) -> Iterator[tuple[Path, str]]:
    """Yield warnings about resources that no step uses, and about steps that never start.

    The steps of its modules must be in place.
    """
    joined = {model.vnet.name for _, model in models_in(job) if isinstance(model, NetworkInterface) and model.vnet}
    for index, network in enumerate(job.virtual_networks):
        if network.name not in joined:
            yield ("virtualNetworks", index), "has no effect: no step joins it"
    yield from held_steps(job.steps, ("steps",), job.resources)
    runs = [model for _, model in models_in(job) if isinstance(model, StepRun)]
    if runs and job.resources.gpus and not any(run.resources_in(job.resources).gpus for run in runs):
        what = "is paid for, but no step gets a GPU: write resources: {gpusPerTask: N} in the run that uses them"
        yield ("resources", "gpus"), what


def _on_step(place: Path, step: Step) -> Iterator[tuple[Path, str]]:
    if step == Step():
        yield place, "is empty, so it does nothing"
    if step.if_ and _CONSTANT.fullmatch(step.if_.strip()):
        what = "is always true: bash's [[ ]] treats any word as true, even false and 0; compare it, such as $A = 1"
        yield (*place, "if"), what


def _outdated_fields(place: Path, model: Model) -> Iterator[tuple[Path, str]]:
    for name, field in type(model).model_fields.items():
        instead = type(model).OUTDATED.get(field.alias or name)
        if instead and getattr(model, name) != field.default:
            yield (*place, field.alias or name), f"is outdated; use {instead}"


def _odd_quotes(place: Path, run: StepRun) -> Iterator[tuple[Path, str]]:
    """Yield typographic quotes, which word processors insert."""
    found = _ODD_QUOTE.search(run.command)
    if found:
        yield (
            (*place, "command"),
            f"contains {character_name(found[0])}, which is not a quote for a shell; write ' or \"",
        )


def _set_again(place: Path, model: Model) -> Iterator[tuple[Path, str]]:
    """Yield variables that a later entry of the same list overrides."""
    for name, field in type(model).model_fields.items():
        variables = getattr(model, name)
        if not (isinstance(variables, tuple) and variables and isinstance(variables[0], EnvVar)):
            continue
        last = {variable.key: index for index, variable in enumerate(variables)}
        for index, variable in enumerate(variables):
            if last[variable.key] != index:
                yield (*place, field.alias or name, index), f"has no effect: {variable.key} is set again below"


def _idle_in_job(job: Definition) -> Iterator[tuple[Path, str]]:
    if job.input_mode is not None and not _moves(job.input):
        yield ("inputMode",), "has no effect without input"
    if job.continuous_output_sync and not (job.output and job.output.s3):
        yield ("continuousOutputSync",), "has no effect without output to S3; the output is sent at the end only"
    for name, data in (("input", job.input), ("output", job.output)):
        if data is not None and not _moves(data):
            yield (name,), "names no transport, so nothing is copied"
    if job.input and job.input.s3 and job.input.s3.delete_sync:
        yield ("input", "s3", "deleteSync"), "has no effect on input"


def _moves(data: TransportData | None) -> bool:
    return bool(data and (data.http or data.s3 or data.grid or data.job))


def _without_account(place: Path, container: ContainerRun) -> Iterator[tuple[Path, str]]:
    """Yield warnings about credentials without effect: registry, username and password must all be set."""
    account = {"registry": container.registry, "username": container.username, "password": container.password}
    missing = [name for name, value in account.items() if not value]
    for name in ("username", "password"):
        if account[name] and missing:
            yield (*place, name), f"has no effect without {' and '.join(missing)}"
