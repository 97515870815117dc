"""Loads and checks workflow files. All faults are reported at once, one line each: `FILE:LINE:COLUMN: path: what`.

The values of a file are fitted to the models, as people write YAML. Texts need no quotes: the text is taken as it is
in the file. Modes of files are octal, memory may have a unit. Definitions that services exchange are JSON and are not
converted.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.workflow.advice import advice_on, advice_on_whole
from deepgrid.workflow.canonical import canonical
from deepgrid.workflow.faults import MOST_SHOWN, Fault, all_faults, dotted, unknown_field
from deepgrid.workflow.masking import MASK, masked_places
from deepgrid.workflow.models import Definition
from deepgrid.workflow.models.base import Model, field_of, is_list, model_in
from deepgrid.workflow.models.fields import MEGABYTES, OCTAL, megabytes_in
from deepgrid.workflow.models.running import StepRun
from deepgrid.workflow.models.walk import steps_in
from deepgrid.workflow.slurm_import import is_batch_script
from deepgrid.workflow.yaml_nodes import Document, Path, Unreadable, read

_MODE = re.compile(r"0o?([0-7]{1,4})")
_APART = ("dns", "customNetworkInterfaces")
MAX_BYTES = 256 * 1024
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class LoadedWorkflow:
    """A checked job, its source text, and warnings, one line each."""

    model: Definition
    source_text: str = field(repr=False)
    warnings: tuple[str, ...] = ()
    document: Document = field(default_factory=Document, repr=False)
    name: str = ""


def load(path: str | os.PathLike[str], *, ignore_unknown_fields: bool = False) -> LoadedWorkflow:
    """Read and check a workflow file; `-` is standard input. Raises InputError for a missing or faulty file."""
    name = "standard input" if str(path) == STANDARD_INPUT else str(path)
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == STANDARD_INPUT else open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{name}: is larger than {MAX_BYTES // 1024} KiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise InputError(f"{name}:{line}:{column}: is not UTF-8 text") from None
    if is_batch_script(text):
        script = name if name == str(path) else "SCRIPT"
        raise InputError(f"{name} is a Slurm batch script.", next_step=f"Make a workflow of it: dps import {script}.")
    return parse(text, name, ignore_unknown_fields=ignore_unknown_fields)


def parse(text: str, name: str, *, ignore_unknown_fields: bool = False) -> LoadedWorkflow:
    """Check the text of a workflow.

    Args:
        text: YAML of the workflow.
        name: The file's name in messages.
        ignore_unknown_fields: Warn of fields that the language does not have, instead of refusing them.

    Raises:
        InputError: One line per fault.
    """
    if len(text) > MAX_BYTES:
        raise InputError(f"{name}: is larger than {MAX_BYTES // 1024} KiB")
    try:
        document, warnings = fit(read(text), Definition, lambda _: ignore_unknown_fields)
    except Unreadable as error:
        raise InputError(f"{name}:{error.line}:{error.column}: {error.problem}") from None
    try:
        job = Definition.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InputError(
            "\n".join(fault_lines(all_faults(error, Definition, document.value), document, name))
        ) from None
    content = canonical(job)  # refuses a definition too large to store
    if MASK in text and (hidden := masked_places(json.loads(content))):
        raise InputError("\n".join(f"{name}: {place}: is hidden by {MASK}; write the secret again" for place in hidden))
    warnings += [(path, what, True) for path, what in advice_on(job)]
    if not any(step.use for _, step in steps_in(job.steps, ("steps",))):  # otherwise once the modules are known
        warnings += [(path, what, True) for path, what in advice_on_whole(job)]
    return LoadedWorkflow(job, text, warning_lines(warnings, document, name), document, name)


def warning_lines(warnings: Iterable[Fault], document: Document, name: str) -> tuple[str, ...]:
    """Return one line per warning."""
    return tuple(fault_lines(((path, f"warning: {what}", key) for path, what, key in warnings), document, name))


def locate_faults(faults: Iterable[Fault], document: Document, whole: str = "the job") -> list[tuple[int, int, str]]:
    """Line, column and `path: what` of the first faults, in the order of the file."""
    found = sorted((*document.place(path, of_key=key), f"{dotted(path, whole)}: {what}") for path, what, key in faults)
    more = len(found) - MOST_SHOWN
    return found if more <= 0 else [*found[:MOST_SHOWN], (*found[MOST_SHOWN - 1][:2], f"and {more} more faults")]


def fault_lines(faults: Iterable[Fault], document: Document, name: str) -> list[str]:
    """`FILE:LINE:COLUMN: path: what` of each fault, or `path: what` if there is no file."""
    return [
        f"{name}:{line}:{column}: {what}" if name else what for line, column, what in locate_faults(faults, document)
    ]


def fit(
    document: Document, model: type[Model], ignores: Callable[[Path], bool] = lambda _: False
) -> tuple[Document, list[Fault]]:
    """Return the document with values as `model` wants them, and warnings about fields that were left out.

    Args:
        document: What the file says.
        model: The model of the root.
        ignores: Returns whether to leave out the field at a path, which the language does not have.
    """
    fitting = _Fitting(document, ignores)
    value = fitting.model(document.value, model, ())
    return replace(document, value=value), fitting.warnings


class _Fitting:
    def __init__(self, document: Document, ignores: Callable[[Path], bool]) -> None:
        self.warnings: list[Fault] = []
        self._unquoted = document.unquoted
        self._ignores = ignores

    def model(self, value: Any, model: type[Model], path: Path) -> Any:
        if not isinstance(value, dict):
            return value
        fields = {}
        for name, part in value.items():
            known = field_of(model, name)
            if known is not None:
                fields[name] = self._value(part, known, (*path, name))
            elif self._ignores((*path, name)):
                self.warnings.append(((*path, name), f"{unknown_field(name, model, at_root=not path)}, ignored", True))
            else:
                fields[name] = part
        return self._host_network(fields, path) if model is StepRun else fields

    def _value(self, value: Any, field: Any, path: Path) -> Any:
        inner = model_in(field.annotation)
        if isinstance(value, list) and is_list(field.annotation):
            parts = [(item, (*path, number)) for number, item in enumerate(value)]
            return [
                self.model(part, inner, place) if inner else self._scalar(part, field, place) for part, place in parts
            ]
        return self.model(value, inner, path) if inner else self._scalar(value, field, path)

    def _scalar(self, value: Any, field: Any, path: Path) -> Any:
        marks = [leaf for leaf in _leaves(field.annotation, field.metadata) if leaf in (OCTAL, MEGABYTES)]
        if MEGABYTES in marks and isinstance(value, str):
            return megabytes_in(value) or value
        text = self._unquoted.get(path)
        if text is None or value is None or isinstance(value, dict | list):
            return value
        if OCTAL in marks:
            mode = _MODE.fullmatch(text)
            return int(mode[1], 8) if mode else value
        return text if str in _leaves(field.annotation) else value

    def _host_network(self, run: dict[str, Any], path: Path) -> dict[str, Any]:
        """Without what only a network namespace has."""
        if run.get("network") not in (None, "host"):
            return run
        for name in _APART:
            if run.get(name):
                what = "is ignored: the step has the host network; set network: slirp4netns or pasta"
                self.warnings.append(((*path, name), what, True))
        return {name: part for name, part in run.items() if name not in _APART}


def _leaves(annotation: Any, metadata: Any = ()) -> Iterator[Any]:
    """Yield the types in an annotation, with `str` for a choice among texts, and all metadata."""
    yield from metadata
    if get_origin(annotation) is Literal:
        yield from {type(choice) for choice in get_args(annotation)}
    elif get_args(annotation):
        for inner in get_args(annotation):
            yield from _leaves(inner)
    else:
        yield annotation
