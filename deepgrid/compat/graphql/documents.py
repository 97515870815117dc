"""Limits for untrusted requests: the size of a body, of a GraphQL document and of an answer.

The values of variables are counted before any code recurses into them. The fields of a fragment count at each of its
uses. One document may store one job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    SelectionSetNode,
    Visitor,
    parse,
    visit,
)
from pydantic_core import from_json

from deepgrid.workflow.yaml_nodes import MAX_DEPTH

MOST_TOKENS = 2000  # an introspection query has 200; jobs come as variables
MOST_CHARACTERS = 64 * 1024
MOST_FIELDS = 400  # the fields of a fragment count at each use; an introspection query has 200
MOST_ANSWERED = 5000  # fields of an answer; the whole schema has 2,400
MOST_NESTED = MAX_DEPTH  # levels of a document or of variables, as in workflow files
MOST_VALUES = 20_000
MOST_OBJECTS = 5_000  # steps, variables and the like; checking one takes 0.1 ms
CHANGES = ("submit", "validate")  # a document may have one of these


def read_body(body: bytes) -> Any:
    """Return the JSON of a body. Raises GraphQLError."""
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise GraphQLError("the body is not JSON, or it is nested too deeply") from None
    if isinstance(found, list):
        raise GraphQLError("the body must be one operation; lists of operations are not supported")
    _require_bounds(found)
    if isinstance(found, dict) and found.get("operationName") == "":  # some clients send this to name no operation
        del found["operationName"]
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
    """Return the parsed document of a request. Raises GraphQLError."""
    document = parse(data["query"], max_lexical_tokens=MOST_TOKENS, max_source_length=MOST_CHARACTERS, no_location=True)
    visit(document, _Levels())
    counts = _Counts(document)
    for part in document.definitions:
        if isinstance(part, OperationDefinitionNode | FragmentDefinitionNode):
            counts.of(part.selection_set)
    return document


class TooLarge(BaseException):
    """The answer holds too many fields.

    It is not an Exception, because then GraphQL would continue with the next field.
    """


def limited_answer() -> Callable[..., Any]:
    """Return a middleware for one execution. It ends an execution with too many fields with TooLarge."""
    answered = 0

    def count(resolve: Callable[..., Any], root: Any, info: Any, **arguments: Any) -> Any:
        nonlocal answered
        answered += 1
        if answered > MOST_ANSWERED:
            raise TooLarge
        return resolve(root, info, **arguments)

    return count


class _Levels(Visitor):
    """Refuses deep documents."""

    def __init__(self) -> None:
        super().__init__()
        self._level = 0

    def _enter(self, *_: Any) -> None:
        self._level += 1
        _require_few_levels(self._level)

    def _leave(self, *_: Any) -> None:
        self._level -= 1

    enter_selection_set = enter_object_value = enter_list_value = _enter
    leave_selection_set = leave_object_value = leave_list_value = _leave


@dataclass(frozen=True)
class _Count:
    """Numbers of fields, of fields that change something, and of levels."""

    fields: int = 0
    changes: int = 0
    levels: int = 0


class _Counts:
    """Counts the contents of selections with their fragments expanded. Each fragment is visited once."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._known: dict[str, _Count] = {}

    def of(self, selections: SelectionSetNode | None, level: int = 1) -> _Count:
        """Return the count of some selections at this level. Raises GraphQLError above a limit."""
        _require_few_levels(level)
        fields = changes = levels = 0
        for node in selections.selections if selections else ():
            if isinstance(node, FragmentSpreadNode):
                inner = self._of_fragment(node.name.value, level + 1)
            else:
                inner = self.of(node.selection_set, level + 1)  # type: ignore[attr-defined]
            if isinstance(node, FieldNode):
                fields, changes = fields + 1, changes + (node.name.value in CHANGES)
            fields, changes, levels = fields + inner.fields, changes + inner.changes, max(levels, inner.levels + 1)
            if fields > MOST_FIELDS:
                raise GraphQLError(f"the document has more than {MOST_FIELDS} fields, including its fragments")
            if changes > 1:
                raise GraphQLError("a request may submit or check one job only")
        _require_few_levels(level + levels)
        return _Count(fields, changes, levels)

    def _of_fragment(self, name: str, level: int) -> _Count:
        if name not in self._known:
            fragment = self._fragments.get(name)  # a missing or circular fragment is refused later
            self._known[name] = _Count()
            self._known[name] = self.of(fragment.selection_set if fragment else None, level)
        _require_few_levels(level + self._known[name].levels)
        return self._known[name]


def _require_few_levels(level: int) -> None:
    if level > MOST_NESTED:
        raise GraphQLError(f"the document is nested deeper than {MOST_NESTED} levels")
