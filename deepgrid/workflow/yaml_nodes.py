"""Parses YAML text into plain values, each with its line and column.

Reads the core types of YAML 1.2, so `yes`, `1:30`, dates and `010` stay text. Mappings may merge others (`<<`). Keys
of the root that begin with `x-` hold anchors and are left out. Quickly refuses dangerous or wrong input: duplicate
keys, tags, alias bombs, very deep nesting, more than one document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from deepgrid.plain_text import visible
from deepgrid.workflow.yaml_problems import sentence_for

Path = tuple[str | int, ...]

MAX_DEPTH = 64
MAX_COST = 1 << 19  # of a document whose aliases are expanded: its characters, and VALUE_COST per value
VALUE_COST = 8

HOLDER = "x-"  # keys of the root that begin so hold anchors, as in Compose files

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_TAG = "tag:yaml.org,2002:"
_NULL = re.compile(r"(~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_OCTAL = re.compile(r"[-+]?0[0-9]+")  # octal for some readers of YAML, decimal for others
_MOST_DIGITS = 40  # Python refuses numbers of thousands of digits
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,40}|[0-9]{1,40}(\.[0-9]{0,40})?)([eE][-+]?[0-9]{1,4})?")


class Unreadable(Exception):
    """The text is not usable YAML; `line` and `column` count from 1."""

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


@dataclass
class Document:
    """The values of a document and their places.

    `keys` holds the places of field names, `unquoted` the text of each value without quotes as it is in the file.
    """

    value: Any = None
    unquoted: dict[Path, str] = field(default_factory=dict, repr=False)
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def place(self, path: Path, *, of_key: bool = False) -> tuple[int, int]:
        """Return line and column of a value (or of its key), or of the nearest value around it."""
        if of_key and path in self.keys:
            return self.keys[path]
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, (1, 1))

    def moved(self, to: Callable[[int], int]) -> Document:
        """Return the same document, with line numbers mapped to the text from which it was made."""

        def all_of(places: dict[Path, tuple[int, int]]) -> dict[Path, tuple[int, int]]:
            return {path: (to(line), column) for path, (line, column) in places.items()}

        return replace(self, values=all_of(self.values), keys=all_of(self.keys))


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's parser without the implicit types of YAML 1.1; `_scalar` resolves scalars.

    It counts while it reads. An alias costs as much as the value that it repeats, so nothing is expanded to be counted.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._cost = 0
        self._costs: dict[yaml.Node, int] = {}  # of the values that aliases may repeat

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Stop at the limits. PyYAML recurses, and takes quadratic time per level."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, here = self._cost, _place(event.start_mark)
        if self._depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels", *here)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        assert node is not None
        if isinstance(event, yaml.AliasEvent):
            if node not in self._costs:
                raise Unreadable("an alias cannot repeat the value that it is part of", *here)
            self._cost += self._costs[node]
        else:
            if isinstance(node, yaml.ScalarNode) and node.style == '"':
                node.value = _PAIR.sub(_join_surrogates, node.value)
            self._cost += VALUE_COST + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._costs[node] = self._cost - before
        if self._cost > MAX_COST:
            what = "too large once its aliases are expanded" if self.anchors else "holds too many values"
            raise Unreadable(what, *here)
        return node


def read(text: str) -> Document:
    """Read one YAML document. Raises Unreadable."""
    try:
        loader = _CoreLoader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        if root is None:
            raise Unreadable("the file is empty")
        return _Walk().document(root)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise Unreadable(f"YAML does not allow the character U+{int(error.character):04X}", line, column) from None
    except yaml.MarkedYAMLError as error:
        raise Unreadable(sentence_for(error, text), *_place(error.problem_mark or error.context_mark)) from None


class _Walk:
    """One pass over the node graph. Expands aliases, which `_CoreLoader` has counted."""

    def __init__(self) -> None:
        self.found = Document()

    def document(self, root: yaml.Node) -> Document:
        value = self.value(root, ())
        if isinstance(value, dict):
            value = {key: part for key, part in value.items() if not key.startswith(HOLDER)}
        self.found.value = value
        return self.found

    def value(self, node: yaml.Node, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels", *_place(node.start_mark))
        self.found.values[path] = _place(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            if node.style is None:
                self.found.unquoted[path] = node.value
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            _check_tag(node, "seq")
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        _check_tag(node, "map")
        return self._mapping(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, (key_node, value_node) in self._fields(node, 0).items():
            self.found.keys[(*path, key)] = _place(key_node.start_mark)
            result[key] = self.value(value_node, (*path, key))
        return result

    def _fields(self, node: yaml.MappingNode, merges: int) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the fields of a mapping and of its merged mappings.

        Its own have priority over the first merged mapping.
        """
        fields: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise Unreadable("a field name must be plain text", *_place(key_node.start_mark))
            key: str = key_node.value
            if key in fields or (_is_merge(key_node) and merged):
                raise Unreadable(f"duplicate field '{visible(key[:80])}'", *_place(key_node.start_mark))
            if _is_merge(key_node):
                merged = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            else:
                fields[key] = (key_node, value_node)
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                raise Unreadable("<< merges mappings, such as *NAME or [*ONE, *OTHER]", *_place(other.start_mark))
            if merges > MAX_DEPTH:
                raise Unreadable(f"merges more than {MAX_DEPTH} levels", *_place(other.start_mark))
            for key, field_nodes in self._fields(other, merges + 1).items():
                fields.setdefault(key, field_nodes)
        return fields


def _scalar(node: yaml.ScalarNode) -> Any:
    _check_tag(node, "str")
    text: str = node.value
    if node.style is not None:  # quoted, or a block: always text
        return text
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text[: _MOST_DIGITS + 1])  # any number so long is too large
    if _OCTAL.fullmatch(text):
        return text
    return float(text) if _FLOAT.fullmatch(text) else text


def _join_surrogates(pair: re.Match[str]) -> str:
    """Return the character that JSON writes as two escapes. YAML reads them as two, which are not characters."""
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _is_merge(key: yaml.ScalarNode) -> bool:
    return bool(key.value == "<<" and key.style is None)


def _check_tag(node: yaml.Node, kind: str) -> None:
    if node.tag != _TAG + kind:
        raise Unreadable("tags (!name) are not used in workflow files", *_place(node.start_mark))


def _place(mark: yaml.Mark | None) -> tuple[int, int]:
    """Return line and column, counted from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
