"""Workflows as the client has them: checked, with all modules resolved, ready to submit.

The workflow language takes 0.3 s to load. It is imported where it is used: programs that only read jobs, such as
`dps job list`, do not load it.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.workflow import Definition, LoadedWorkflow

FilePath = str | os.PathLike[str]
Source = str | os.PathLike[str] | Mapping[str, Any]
"""A path of a workflow file, its YAML text (with at least one line end), or its content as a mapping."""

UNNAMED = "job"
MOST_NESTED = 200  # mappings and lists inside each other; the language itself allows fewer


class Workflow:
    """A checked workflow. `AsyncGrid.workflow` and `Grid.workflow` make it.

    Attributes:
        name: Name of the job unless another one is given: the file's name without its extension.
        definition: The definition, with modules resolved.
    """

    def __init__(self, definition: Definition, name: str, warnings: tuple[str, ...] = ()) -> None:
        self.definition = definition
        self.name = name
        self._warnings = warnings

    def validate(self) -> tuple[str, ...]:
        """Advice on the workflow, one line each. A workflow with faults is refused when it is read."""
        return self._warnings

    def render(self) -> str:
        """Return the batch script that a cluster runs for it."""
        from deepgrid.sbatch import StoragePaths, render

        return render(self.definition, StoragePaths())

    def env(self, variables: Mapping[str, object] | None = None, /, **more: object) -> Workflow:
        """Return a copy with these environment variables, which replace variables with the same name.

        Args:
            variables: Values by name. A value is written as `str` writes it; None is refused.
            more: Further variables.

        Returns:
            The copy.

        Raises:
            InputError: A name or value is not allowed in a job.
        """
        from deepgrid.workflow import with_variables

        given = variable_texts({**(variables or {}), **more})
        return Workflow(with_variables(self.definition, given), self.name, self._warnings)

    def with_definition(self, definition: Definition) -> Workflow:
        """Return a copy with another definition."""
        return Workflow(definition, self.name, self._warnings)

    def __repr__(self) -> str:
        return f"Workflow({self.name!r})"


async def read_workflow(source: Source | Workflow, *, ignore_unknown_fields: bool = False) -> Workflow:
    """Read and check a workflow as `AsyncGrid.workflow` does. A `Workflow` is returned unchanged."""
    if isinstance(source, Workflow):
        return source
    loaded, name = await asyncio.to_thread(_load, source, ignore_unknown_fields)  # modules may come from the network
    return Workflow(loaded.model, name, loaded.warnings)


def _load(source: Source, ignore: bool) -> tuple[LoadedWorkflow, str]:
    from deepgrid.modules import load

    if isinstance(source, Mapping):
        return _parse(_as_text(source), ignore), UNNAMED
    if isinstance(source, str) and "\n" in source:
        return _parse(source, ignore), UNNAMED
    path = Path(source).expanduser()
    return load(path, ignore_unknown_fields=ignore), UNNAMED if str(path) == "-" else path.stem


def _parse(text: str, ignore: bool) -> LoadedWorkflow:
    from deepgrid.modules import resolve
    from deepgrid.workflow import parse

    loaded = parse(text, UNNAMED, ignore_unknown_fields=ignore)
    return resolve(loaded, ignore_unknown_fields=ignore)


def _as_text(content: Mapping[str, Any]) -> str:
    return json.dumps(_plain(content, ()), ensure_ascii=False)  # JSON is YAML


def _plain(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a value as YAML expresses it: paths as texts, numbers of other libraries as numbers. Raises InputError."""
    if len(path) > MOST_NESTED:
        raise InputError("The workflow is nested too deeply, or contains itself.")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part, (*path, str(key))) for key, part in value.items()}
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes):
        return [_plain(part, (*path, number)) for number, part in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if getattr(value, "ndim", None) == 0:  # a number of numpy
        return _plain(value.item(), path)
    if isinstance(value, Enum):
        return _plain(value.value, path)
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() and abs(value) < 10**18 else str(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    raise InputError(f"{place}: YAML cannot express a value of the type {type(value).__name__}.")


def variable_texts(variables: Mapping[str, object]) -> dict[str, str]:
    """Return values of environment variables as texts. Raises InputError for what has no text of its own."""
    return {_variable_name(name): _variable_text(name, value) for name, value in variables.items()}


def _variable_name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"{name!r} ({type(name).__name__}) is not the name of a variable.")
    return name


def _variable_text(name: str, value: object) -> str:
    if value is None:
        raise InputError(f"The variable {name} is None.", next_step='Leave it out, or write "" for an empty one.')
    if isinstance(value, Enum) and not isinstance(value, str | int):
        return _variable_text(name, value.value)
    bare = type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__
    if bare or callable(value) or isinstance(value, bytes | bytearray) or getattr(value, "ndim", None):
        kind = type(value).__name__
        raise InputError(f"The variable {name} is of the type {kind}, which has no text.", next_step="Give its text.")
    return str(value)
