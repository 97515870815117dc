"""Parses a module: fills in its template, and maps every fault to its line in the module file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import ValidationError

from deepgrid.modules.calling import Call
from deepgrid.modules.gotemplate import TemplateLimits, fill_in_go, is_go_template
from deepgrid.modules.reach import ModuleLimits
from deepgrid.modules.template import Filled, TemplateFault, fill_in
from deepgrid.workflow import yaml_nodes
from deepgrid.workflow.faults import Fault, Rule, all_faults
from deepgrid.workflow.loading import fit, locate_faults
from deepgrid.workflow.models import Module, ModuleInput
from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.fields import EMPTY_LIST

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
class ReadModule(Generic[M]):
    """A module or a part of it, the places of its parts in its file, and warnings about fields that were left out."""

    module: M
    document: yaml_nodes.Document
    warnings: list[Fault]


class _Inputs(Model):
    inputs: Annotated[tuple[ModuleInput, ...], EMPTY_LIST] = ()


def declared_inputs(text: str, *, ignore_unknown: bool = False) -> tuple[ModuleInput, ...]:
    """Parse the inputs of a module, before its template is filled in. Raises ModuleFaults."""
    found = _INPUTS.search(text)
    if found is None:
        return ()
    above = text.count("\n", 0, found.start())
    try:
        read = _parse(_Inputs, found[0], lambda line: line + above, ignore_unknown=ignore_unknown)
    except ModuleFaults as error:
        hint = [(above + 1, 1, f"inputs: {_PLAIN}")] if any(mark in found[0] for mark in ("{{", "{%")) else []
        raise ModuleFaults([*hint, *error.found]) from None
    _check_distinct(read.module.inputs, read.document)
    return read.module.inputs


def read_module(text: str, call: Call, rule: Rule, limits: ModuleLimits) -> ReadModule[Module]:
    """Fill in and parse a module, and check the arguments of its call.

    Raises ModuleFaults, or WrongArguments. Faults found by `rule` are included only if there are others; the caller
    applies `rule` again.
    """
    if is_go_template(text):
        return _read_go_module(text, call, rule, limits)
    inputs = declared_inputs(text, ignore_unknown=call.ignore_unknown)
    call.check_arguments(inputs)
    with _faults_of_template():
        filled = fill_in(text, call.jinja_values(inputs), limits)
    read = _parse(Module, filled.text, _lines_of(filled), rule, ignore_unknown=call.ignore_unknown)
    if read.module.inputs != inputs:
        raise ModuleFaults(
            [(*read.document.place(("inputs",), of_key=True), f"inputs: {_PLAIN}, with its name at the margin")]
        )
    return read


def _read_go_module(text: str, call: Call, rule: Rule, limits: ModuleLimits) -> ReadModule[Module]:
    """Return the same for Go's syntax, where inputs are variables of steps only, so the template does not need them."""
    with _faults_of_template():
        filled = fill_in_go(text, call.go_values(), TemplateLimits(limits.template_steps, limits.file_bytes))
    read = _parse(Module, filled.text, _lines_of(filled), rule, ignore_unknown=call.ignore_unknown)
    _check_distinct(read.module.inputs, read.document)
    call.check_arguments(read.module.inputs)
    return read


@contextmanager
def _faults_of_template() -> Iterator[None]:
    try:
        yield
    except TemplateFault as error:
        raise ModuleFaults([(error.line, 1, error.what)]) from None


def _lines_of(filled: Filled) -> Callable[[int], int]:
    return lambda line: filled.lines[min(line, len(filled.lines)) - 1]


def _check_distinct(inputs: tuple[ModuleInput, ...], document: yaml_nodes.Document) -> None:
    for number, one in enumerate(inputs):
        if any(one.key == other.key for other in inputs[:number]):
            place = document.place(("inputs", number, "key"))
            raise ModuleFaults([(*place, f"inputs[{number}].key: is the key of another input already")])


def _parse(
    model: type[M], text: str, line_of: Callable[[int], int], rule: Rule | None = None, *, ignore_unknown: bool = False
) -> ReadModule[M]:
    try:
        document = yaml_nodes.read(text).moved(line_of)
    except yaml_nodes.Unreadable as error:
        raise ModuleFaults([(line_of(error.line), error.column, error.problem)]) from None
    # The other fields of a module run nothing, so a mistake in them is no reason to refuse it.
    document, warnings = fit(document, model, lambda path: ignore_unknown or path[0] != "steps")
    try:
        module = model.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        found = all_faults(error, model, document.value, rule)
        raise ModuleFaults(locate_faults(found, document, "the module")) from None
    return ReadModule(module, document, warnings)
