"""Loads and checks workflow files.

All faults are reported at once, one line each: `FILE:LINE:COLUMN: path: what`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.workflow.canonical import canonical
from deepgrid.workflow.faults import MOST_SHOWN, Fault, all_faults, dotted
from deepgrid.workflow.models import Definition
from deepgrid.workflow.reading.advice import advice_on
from deepgrid.workflow.reading.fitting import fit
from deepgrid.workflow.yaml_text import yaml_nodes

MAX_BYTES = 256 * 1024


@dataclass(frozen=True)
class LoadedWorkflow:
    """A checked job, its source text, and warnings, one line each."""

    model: Definition
    source_text: str = field(repr=False)
    warnings: tuple[str, ...] = ()
    document: yaml_nodes.Document = field(default_factory=yaml_nodes.Document, repr=False)
    name: str = ""


def load(path: str | Path, *, ignore_unknown_fields: bool = False) -> LoadedWorkflow:
    """Read and check a workflow file. Raises InputError for a missing or faulty file."""
    name = str(path)
    try:
        with open(path, "rb") as file:
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
        document, warnings = fit(yaml_nodes.read(text), Definition, ignore_unknown=ignore_unknown_fields)
    except yaml_nodes.Unreadable as error:
        raise InputError(f"{name}:{error.line}:{error.column}: {error.problem}") from None
    try:
        job = Definition.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InputError(
            "\n".join(fault_lines(all_faults(error, Definition, document.value), document, name))
        ) from None
    canonical(job)  # refuses a definition too large to store
    warnings += [(path, what, True) for path, what in advice_on(job)]
    return LoadedWorkflow(job, text, tuple(warning_lines(warnings, document, name)), document, name)


def located(
    faults: Iterable[Fault], document: yaml_nodes.Document, whole: str = "the job"
) -> list[tuple[int, int, str]]:
    """Line, column and `path: what` of the first faults, in the order of the file."""
    found = sorted((*document.place(path, of_key=key), f"{dotted(path, whole)}: {what}") for path, what, key in faults)
    more = len(found) - MOST_SHOWN
    return found if more <= 0 else [*found[:MOST_SHOWN], (*found[MOST_SHOWN - 1][:2], f"and {more} more faults")]


def fault_lines(faults: Iterable[Fault], document: yaml_nodes.Document, name: str) -> list[str]:
    """`FILE:LINE:COLUMN: path: what` of each fault, or `path: what` if there is no file."""
    return [f"{name}:{line}:{column}: {what}" if name else what for line, column, what in located(faults, document)]


def warning_lines(warnings: Iterable[Fault], document: yaml_nodes.Document, name: str) -> list[str]:
    """`FILE:LINE:COLUMN: path: warning: what` of each warning."""
    return fault_lines(((path, f"warning: {what}", key) for path, what, key in warnings), document, name)
