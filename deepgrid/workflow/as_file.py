"""A definition as a workflow file: YAML in the order of the language, with scripts as blocks of lines. Pure."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from deepgrid.workflow.schema import json_schema

WIDTH = 120


def as_file(values: Any) -> str:
    """Return the text of a workflow file with the values of a definition in canonical form."""
    text: str = yaml.dump(_order_fields(values), Dumper=_Writer, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


class _Writer(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and equal parts twice instead of as aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and flow)  # lists are indented, as people write them


def _text(writer: _Writer, text: str) -> yaml.ScalarNode:
    lines = text.splitlines()
    is_block = len(lines) > 1 and all(line == line.rstrip() for line in lines) and not text[0].isspace()
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style="|" if is_block else None)


_Writer.add_representer(str, _text)


@cache
def _places() -> dict[str, int]:
    """Return the position of each field name in the language."""
    found: dict[str, int] = {}
    schema = json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for name in part.get("properties", {}):
            found.setdefault(name, len(found))
    return found


def _order_fields(part: Any) -> Any:
    if isinstance(part, list):
        return [_order_fields(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    places = _places()
    return {name: _order_fields(part[name]) for name in sorted(part, key=lambda name: (places.get(name, 999), name))}
