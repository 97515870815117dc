"""Bounds on requests of strangers: what a body and a GraphQL document may hold.

The values of variables are counted before any code recurses into them. One document may store one job.
"""

from __future__ import annotations

from typing import Any

from graphql import DocumentNode, FieldNode, GraphQLError, Visitor, parse, visit
from pydantic_core import from_json

from deepgrid.workflow.yaml_text.yaml_nodes import MAX_DEPTH

MOST_TOKENS = 2000  # an introspection query has 200; jobs come as variables
MOST_CHARACTERS = 64 * 1024
MOST_FIELDS = 200
MOST_NESTED = MAX_DEPTH  # levels of a document or of variables, as in workflow files
MOST_VALUES = 20_000
MOST_OBJECTS = 5_000  # steps, variables and the like; checking one takes 0.1 ms
CHANGES = ("submit", "validate")  # at most one of these in a document


def read_body(body: bytes) -> Any:
    """The JSON of a body. Raises GraphQLError."""
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise GraphQLError("the body is not JSON, or it is nested too deeply") from None
    if isinstance(found, list):
        raise GraphQLError("the body must be one operation; lists of operations are not supported")
    _require_bounds(found)
    return found


def _require_bounds(value: Any) -> None:
    """Refuse too many values, or too many levels of them."""
    level, depth, count, objects = [value], 0, 0, 0
    while level:
        count += len(level)
        depth += 1
        if depth > MOST_NESTED + 2:  # the body, and its variables
            raise GraphQLError(f"the variables are nested deeper than {MOST_NESTED} levels")
        objects += sum(isinstance(part, dict) for part in level)
        if count > MOST_VALUES or objects > MOST_OBJECTS:
            raise GraphQLError(f"the variables hold more than {MOST_VALUES} values or {MOST_OBJECTS} objects")
        holders = [part for part in level if isinstance(part, dict | list)]
        level = [inner for part in holders for inner in (part.values() if isinstance(part, dict) else part)]


def read_document(_context: Any, data: dict[str, Any]) -> DocumentNode:
    """The parsed document of a request. Raises GraphQLError."""
    document = parse(data["query"], max_lexical_tokens=MOST_TOKENS, max_source_length=MOST_CHARACTERS, no_location=True)
    visit(document, _Bounds())
    return document


class _Bounds(Visitor):
    """Counts the fields and the levels of a document."""

    def __init__(self) -> None:
        super().__init__()
        self._level = self._fields = self._changes = 0

    def _enter(self, *_: Any) -> None:
        self._level += 1
        if self._level > MOST_NESTED:
            raise GraphQLError(f"the document is nested deeper than {MOST_NESTED} levels")

    def _leave(self, *_: Any) -> None:
        self._level -= 1

    enter_selection_set = enter_object_value = enter_list_value = _enter
    leave_selection_set = leave_object_value = leave_list_value = _leave

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self._fields += 1
        self._changes += node.name.value in CHANGES
        if self._fields > MOST_FIELDS:
            raise GraphQLError(f"the document has more than {MOST_FIELDS} fields")
        if self._changes > 1:
            raise GraphQLError("a request may submit or check one job only")
