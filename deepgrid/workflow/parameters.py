"""Definitions that differ in parameters only: one per parameter set, or many sets in one.

A parameter is an environment variable of the job. It replaces a variable of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.workflow.faults import dotted, faults_of
from deepgrid.workflow.models.base import EnvVar
from deepgrid.workflow.models.job import Definition
from deepgrid.workflow.models.running import StepRun
from deepgrid.workflow.models.steps import Step, StepModule

PACK = "deepgrid:pack"  # the source of a parameter set, which is a module without a repository
SET_ENV = "DEEPGRID_SET"
# After a failed set: its number is noted, and its status unless an earlier set failed. See `Definition` for the rest.
NOTE_FAILURE = """echo "deepgrid: parameter set {number} of {count} failed with status $DEEPSQUARE_ERROR_CODE"
printf 'DEEPGRID_FAILED_SETS=%s\\nDEEPGRID_FAILED=%s\\n' "${{DEEPGRID_FAILED_SETS-}} {number}" \
  "${{DEEPGRID_FAILED-$DEEPSQUARE_ERROR_CODE}}" >>"$DEEPSQUARE_ENV"
"""
FAIL = """echo "deepgrid: of {count} parameter sets, these failed:$DEEPGRID_FAILED_SETS"
exit "$DEEPGRID_FAILED"
"""


def with_variables(job: Definition, variables: Mapping[str, str]) -> Definition:
    """Return a copy with these environment variables of the job.

    Raises InputError for a name or value that is not allowed.
    """
    kept = [variable for variable in job.env if variable.key not in variables]
    return _validated_copy(job, {"env": (*kept, *_env(variables))})


def pack(job: Definition, sets: Sequence[Mapping[str, str]]) -> Definition:
    """Return a definition that runs the steps of `job` once per parameter set, one set after another.

    A line of output says which set begins. A set that fails does not stop the later ones. The job fails at the end
    if a set failed, with the exit status of the first one that did. Variables that the steps of a set write to
    `DEEPSQUARE_ENV` end with the set. All sets share the job's folders.

    Raises InputError for a name or value that is not allowed, or too many steps.
    """
    count = len(sets)
    steps = (_step(job, variables, number, count) for number, variables in enumerate(sets, 1))
    return _validated_copy(job, {"steps": (*steps, _last_step(count))})


def without_texts(job: Definition) -> Definition:
    """Return a copy in which each value of a variable and each command is the same text.

    Jobs of a sweep become equal, as do jobs that differ in their commands only. A batch script holds each of these
    texts as one quoted word, and nothing else depends on it. Commands that become arguments of an entry point stay,
    because their number of words matters.
    """
    return Definition.model_validate(_blank_values(job.model_dump(mode="json", by_alias=True, exclude_defaults=True)))


def _blank_values(part: Any) -> Any:
    if isinstance(part, dict):
        if part.keys() == {"key", "value"}:
            return {"key": part["key"], "value": "value"}
        return {name: _blanked_run(value) if name == "run" else _blank_values(value) for name, value in part.items()}
    return [_blank_values(one) for one in part] if isinstance(part, list) else part


def _blanked_run(part: Any) -> Any:
    blanked = _blank_values(part)
    if StepRun.model_validate(part).starts_entry_point:
        return blanked
    return blanked | {"command": "command"}


def _step(job: Definition, variables: Mapping[str, str], number: int, count: int) -> Step:
    once = StepModule(source=PACK, inputs=_env(variables), export_env_as=SET_ENV, steps=job.steps)
    note = Step(run=StepRun(command=NOTE_FAILURE.format(number=number, count=count)))
    return Step(name=f"parameter set {number} of {count}", module=once, catch=(note,))


def _last_step(count: int) -> Step:
    return Step(if_="-n ${DEEPGRID_FAILED-}", run=StepRun(command=FAIL.format(count=count)))


def _env(variables: Mapping[str, str]) -> tuple[EnvVar, ...]:
    return tuple(_variable(key, value) for key, value in variables.items())


def _variable(key: str, value: str) -> EnvVar:
    try:
        return EnvVar(key=key, value=value)
    except ValidationError as error:
        faults = ", ".join(what for _, what, _ in faults_of(error, EnvVar))
        raise InputError(f"the variable {key[:40]!r} {faults}") from None


def _validated_copy(job: Definition, changes: dict[str, object]) -> Definition:
    """`job` with these fields, checked as a whole. Its parts are shared, not copied."""
    try:
        return Definition.model_validate({name: getattr(job, name) for name in Definition.model_fields} | changes)
    except ValidationError as error:
        faults = [f"{dotted(path)}: {what}" for path, what, _ in faults_of(error)]
        raise InputError("\n".join(faults)) from None
