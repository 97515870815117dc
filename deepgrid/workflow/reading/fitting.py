"""Fits the values of a YAML file to the models, as people write YAML.

Texts need no quotes: the text is taken as it is in the file. Modes of files are octal. Only files are read like this.
Definitions that services exchange are JSON and are not converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

from deepgrid.workflow.faults import Fault, unknown_field
from deepgrid.workflow.models.base import Model, field_of, is_list, model_in
from deepgrid.workflow.models.fields import OCTAL
from deepgrid.workflow.models.running import StepRun
from deepgrid.workflow.yaml_text.yaml_nodes import Document, Path

_MODE = re.compile(r"0o?([0-7]{1,4})")
_APART = ("dns", "customNetworkInterfaces")


def fit(document: Document, model: type[Model], *, ignore_unknown: bool = False) -> tuple[Document, list[Fault]]:
    """The document with values as `model` wants them, and warnings about fields that were left out.

    Args:
        document: What the file says.
        model: The model of the root.
        ignore_unknown: Leave out fields that the language does not have.
    """
    fitting = _Fitting(document, ignore_unknown)
    value = fitting.model(document.value, model, ())
    return replace(document, value=value), fitting.warnings


class _Fitting:
    def __init__(self, document: Document, ignore_unknown: bool) -> None:
        self.warnings: list[Fault] = []
        self._unquoted = document.unquoted
        self._ignore_unknown = ignore_unknown

    def model(self, value: Any, model: type[Model], path: Path) -> Any:
        if not isinstance(value, dict):
            return value
        fields = {}
        for name, part in value.items():
            known = field_of(model, name)
            if known is not None:
                fields[name] = self._value(part, known, (*path, name))
            elif self._ignore_unknown:
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
        text = self._unquoted.get(path)
        if text is None or value is None or isinstance(value, dict | list):
            return value
        if any(leaf is OCTAL for leaf in _leaves(field.annotation, field.metadata)):
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
    """The types in an annotation, with `str` for a choice among texts, and all metadata."""
    yield from metadata
    if get_origin(annotation) is Literal:
        yield from {type(choice) for choice in get_args(annotation)}
    elif get_args(annotation):
        for inner in get_args(annotation):
            yield from _leaves(inner)
    else:
        yield annotation
