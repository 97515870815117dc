"""The GraphQL schema of the job service, made from the models of the workflow language.

`python -m tools.graphql_schema` writes it. A test fails while the file is out of date.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from deepgrid.workflow.models import Definition, Module, PrivateFiles, SealedKey, StepModule
from deepgrid.workflow.models.base import Model, is_list, model_in

FILE = Path(__file__).parents[2] / "deepgrid" / "compat" / "graphql" / "schema.graphql"
WIDTH = 110

HEAD = '''# Made by `python -m tools.graphql_schema` from the models of the workflow language; do not edit.

type Query {
  """
  The batch script of a stored definition. It holds the job's secrets, so only services that run with
  --debug-scripts answer. All others refuse.
  """
  job(batchLocationHash: String!): String!
}

type Mutation {
  """Stores a job, and returns the hash that the job names on chain as batchLocationHash."""
  submit(job: Job!): String!
  """Checks a module. The answer is `valid`, or its faults, one per line."""
  validate(module: Module!): String!
}
'''

SCALARS = {str: "String", int: "Int", bool: "Boolean"}
NOT_WRITTEN_BY_HAND = {StepModule, PrivateFiles, SealedKey}  # only in the stored form


def schema() -> str:
    """Return the schema as text."""
    found: dict[type[Model], None] = {}
    for root in (Definition, Module):
        _collect(root, found)
    return "\n".join([HEAD, *(_type(model) for model in found)])


def _collect(model: type[Model], found: dict[type[Model], None]) -> None:
    """Add a model and all models inside it, in the order of their fields."""
    if model in found or model in NOT_WRITTEN_BY_HAND:
        return
    found[model] = None
    for field in model.model_fields.values():
        inner = model_in(field.annotation)
        if inner:
            _collect(inner, found)


def _type(model: type[Model]) -> str:
    lines = []
    for name, field in model.model_fields.items():
        if model_in(field.annotation) not in NOT_WRITTEN_BY_HAND:
            lines += _description(field.description or "", "  ")
            lines.append(f"  {field.alias or name}: {_kind(field)}")
    about = "\n".join(_description(model.__doc__ or "", ""))
    return f"{about}\ninput {_name(model)} {{\n" + "\n".join(lines) + "\n}\n"


def _name(model: type[Model]) -> str:
    return "Job" if model is Definition else model.__name__


def _kind(field: Any) -> str:
    inner = model_in(field.annotation)
    name = _name(inner) if inner else SCALARS[_scalar(field.annotation)]
    return (f"[{name}!]" if is_list(field.annotation) else name) + ("!" if field.is_required() else "")


def _scalar(annotation: Any) -> type:
    """Return the one scalar type in an annotation."""
    if get_origin(annotation) is Literal:
        return type(get_args(annotation)[0])
    if isinstance(annotation, type) and annotation in SCALARS:
        return annotation
    wanted = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else get_args(annotation)[:1]
    return next(_scalar(inner) for inner in wanted if inner is not type(None))


def _description(text: str, indent: str) -> list[str]:
    """Return a description, on one line if it fits."""
    plain = " ".join(text.split())
    if len(plain) + len(indent) + 6 <= WIDTH and not plain.endswith('"'):
        return [f'{indent}"""{plain}"""']
    lines = textwrap.wrap(plain, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f'{indent}"""', *lines, f'{indent}"""']
