"""Turns the input of an operation into the models of the workflow language, by the checks of workflow files.

`null` means absent at every depth. Each fault becomes an entry of `errors` in the form that existing clients show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.workflow import Definition, canonical
from deepgrid.workflow.faults import MOST_SHOWN, Fault, all_faults, dotted
from deepgrid.workflow.loading import fit
from deepgrid.workflow.models import Module
from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.rules import misplaced_waits
from deepgrid.workflow.yaml_nodes import Document, Path

_WORDS = re.compile(r"Cpu|Dns|Uid|Gid|Url|Http|Id(?![a-z])")  # which Go's names have in capitals
_PLACE = re.compile(r"\[[0-9]+\]")

TAGS_OF_KINDS = {
    "missing": "required", "greater_than_equal": "gte", "less_than_equal": "lte", "literal_error": "oneof",
    "too_long": "max",
}  # fmt: skip
TAGS_OF_FIELDS = {
    "key": "valid_envvar_name", "exportEnvAs": "valid_envvar_name", "handleName": "alphanum_underscore",
    "dependsOn": "alphanum_underscore", "image": "valid_container_image_url", "registry": "hostname", "url": "url",
    "endpointUrl": "url", "bucketUrl": "url", "path": "startswith", "workDir": "startswith", "hostDir": "startswith",
    "containerDir": "startswith", "dns": "ip", "address": "cidr", "gatewayAddress": "cidr", "allowedIPs": "cidr",
    "boreAddress": "hostname_port", "endpoint": "hostname_port",
}  # fmt: skip
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class JobFault:
    """One fault: a sentence, the rule, and the place in Go's spelling, such as `Job.Steps[0].Run.Shell`."""

    message: str
    tag: str
    namespace: str

    def entry(self, path: Sequence[str | int]) -> dict[str, Any]:
        """Return the entry for the answer of the operation at `path`."""
        field = _PLACE.sub("", self.namespace.rpartition(".")[2])
        original = f"Key: '{self.namespace}' Error:Field validation for '{field}' failed on the '{self.tag}' tag"
        extensions = {"type": "validation", "tag": self.tag, "namespace": self.namespace, "field": field}
        extensions["original_message"] = original
        return {"message": self.message, "path": list(path), "extensions": extensions}


class FaultyInput(Exception):
    """The input of an operation has these faults."""

    def __init__(self, faults: Sequence[JobFault]) -> None:
        super().__init__("the input is faulty")
        self.faults = faults

    def entries(self, path: Sequence[str | int]) -> list[dict[str, Any]]:
        """Return the entries for the answer of the operation at `path`."""
        return [fault.entry(path) for fault in self.faults]

    def __str__(self) -> str:
        return "\n".join(fault.message for fault in self.faults)


def fault_at(path: Path, what: str, kind: str, root: str) -> JobFault:
    """Return the fault at a path of the input `root`. `kind` is pydantic's name of the rule, if it has one."""
    names = [part for part in path if isinstance(part, str)]
    tag = TAGS_OF_KINDS.get(kind) or (kind == "rule" and names and TAGS_OF_FIELDS.get(names[-1])) or "rule"
    return JobFault(f"{dotted(path, f'the {root.lower()}')}: {what}", tag, _namespace(path, root))


def faults_of_lines(text: str) -> list[JobFault]:
    """Return faults of the job as a whole, one per line: of its modules and of its batch script."""
    return [JobFault(line, "script", "Job") for line in text.splitlines() if line]


def _namespace(path: Path, root: str) -> str:
    named = (f"[{part}]" if isinstance(part, int) else f".{_in_go(part)}" for part in path)
    return root + "".join(named)


def _in_go(name: str) -> str:
    return _WORDS.sub(lambda word: word[0].upper(), name[:1].upper() + name[1:])


def definition_from(given: Any) -> Definition:
    """Return the job of an input. Raises FaultyInput."""
    job = _model_of(Definition, given, "Job")
    try:
        canonical(job)  # refuses a definition too large to store
    except InputError as error:
        raise FaultyInput([JobFault(error.message, "max", "Job")]) from None
    return job


def module_from(given: Any) -> Module:
    """Return the module of an input. Raises FaultyInput.

    Rules that need the job are checked when a job uses the module.
    """
    module = _model_of(Module, given, "Module")
    waits = [(path, what, False) for path, what in misplaced_waits(module.steps, ("steps",))]
    if waits:
        raise FaultyInput(_job_faults(waits, {}, "Module"))
    return module


def _model_of(model: type[M], given: Any, root: str) -> M:
    """`given` as `model`, fitted and checked as the content of a file."""
    document, _warnings = fit(Document(value=_without_nulls(given)), model)
    try:
        return model.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        kinds = {tuple(item["loc"]): item["type"] for item in error.errors(include_url=False, include_input=False)}
        raise FaultyInput(_job_faults(all_faults(error, model, document.value), kinds, root)) from None


def _job_faults(faults: Iterable[Fault], kinds: dict[Path, str], root: str) -> list[JobFault]:
    found = list(faults)
    shown = [fault_at(path, what, kinds.get(path, ""), root) for path, what, _ in found[:MOST_SHOWN]]
    more = len(found) - MOST_SHOWN
    return shown if more <= 0 else [*shown, JobFault(f"and {more} more faults", "rule", root)]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
