"""Parses a module: fills in its template, and maps every fault to its line in the module file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import ValidationError

from deepgrid.modules.sandbox_limits import ModuleLimits
from deepgrid.modules.template import TemplateFault, fill_in
from deepgrid.workflow import yaml_nodes
from deepgrid.workflow.base import Model
from deepgrid.workflow.faults import all_faults
from deepgrid.workflow.fields import EMPTY_LIST
from deepgrid.workflow.loading import located
from deepgrid.workflow.models import Module, ModuleInput
from deepgrid.workflow.partial import Rule

M = TypeVar("M", bound=Model)

# The template needs the inputs, so this field is parsed first. It ends at the next text at the margin.
_INPUTS = re.compile(r"^inputs[ ]*:.*?(?=^[^\s#-]|\Z)", re.M | re.S)
_PLAIN = "is read before the template is filled in, so it must be plain YAML"


class ModuleFaults(Exception):
    """Faults of a module file: line, column and sentence of each."""

    def __init__(self, found: list[tuple[int, int, str]]) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class ReadModule:
    """A module, and the places of its parts in its file."""

    module: Module
    document: yaml_nodes.Document


class _Inputs(Model):
    inputs: Annotated[tuple[ModuleInput, ...], EMPTY_LIST] = ()


def declared_inputs(text: str) -> tuple[ModuleInput, ...]:
    """Parse the inputs of a module, before its template is filled in. Raises ModuleFaults."""
    found = _INPUTS.search(text)
    if found is None:
        return ()
    above = text.count("\n", 0, found.start())
    try:
        inputs, document = _parsed(_Inputs, found[0], lambda line: line + above)
    except ModuleFaults as error:
        hint = [(above + 1, 1, f"inputs: {_PLAIN}")] if any(mark in found[0] for mark in ("{{", "{%")) else []
        raise ModuleFaults([*hint, *error.found]) from None
    for number, one in enumerate(inputs.inputs):
        if any(one.key == other.key for other in inputs.inputs[:number]):
            place = document.place(("inputs", number, "key"))
            raise ModuleFaults([(*place, f"inputs[{number}].key: is the key of another input already")])
    return inputs.inputs


def read_module(
    text: str, values: Mapping[str, Any], inputs: tuple[ModuleInput, ...], rule: Rule, limits: ModuleLimits
) -> ReadModule:
    """Fill in and parse a module. `inputs` are its declared inputs.

    Raises ModuleFaults. Faults found by `rule` are included only if there are others; the caller applies `rule` again.
    """
    try:
        filled = fill_in(text, values, limits)
    except TemplateFault as error:
        raise ModuleFaults([(error.line, 1, error.what)]) from None
    lines = filled.lines
    module, document = _parsed(Module, filled.text, lambda line: lines[min(line, len(lines)) - 1], rule)
    if module.inputs != inputs:
        raise ModuleFaults(
            [(*document.place(("inputs",), of_key=True), f"inputs: {_PLAIN}, with its name at the margin")]
        )
    return ReadModule(module, document)


def _parsed(
    model: type[M], text: str, line_of: Callable[[int], int], rule: Rule | None = None
) -> tuple[M, yaml_nodes.Document]:
    try:
        document = yaml_nodes.read(text).moved(line_of)
    except yaml_nodes.Unreadable as error:
        raise ModuleFaults([(line_of(error.line), error.column, error.problem)]) from None
    try:
        return model.model_validate(document.value, by_alias=True, by_name=False), document
    except ValidationError as error:
        found = all_faults(error, model, document.value, rule)
        raise ModuleFaults(located(found, document, "the module")) from None
