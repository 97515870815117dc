"""Fields of the workflow language and of the Prefect blocks, read from their JSON schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import blocks as block_classes
from blocks.grid import GridBlock
from deepgrid.workflow.models import Module
from deepgrid.workflow.schema import json_schema
from tools.site.tables import code, prose, table

# Fields that Prefect adds to the schema of each block.
OWN_FIELDS_OF_PREFECT = {"_block_document_id", "_block_document_name", "_is_anonymous"}


def workflow() -> str:
    """Return a section per kind of object in a workflow file, with the job first."""
    schema = json_schema()
    return "\n\n".join(_section(name, part) for name, part in [("The job", schema), *schema["$defs"].items()])


def modules() -> str:
    """Return the objects that only a module file has."""
    schema = Module.model_json_schema(by_alias=True)
    own = {name: part for name, part in schema["$defs"].items() if name not in json_schema()["$defs"]}
    text = "\n\n".join(_section(name, part) for name, part in [("The module", schema), *own.items()])
    for name in schema["$defs"].keys() - own:
        text = text.replace(f"](#{name.lower()})", f"](workflow.md#{name.lower()})")
    return text


def blocks() -> str:
    """Return a section per block."""
    return "\n\n".join(_block(block) for block in block_types())


def block_types() -> Iterator[type[GridBlock]]:
    """Yield the classes of the blocks, in the order of their names."""
    for name in block_classes.__all__:
        yield getattr(block_classes, name)


def rows(part: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, kind, default and meaning of each field."""
    required = part.get("required", ())
    for name, field in part.get("properties", {}).items():
        if name not in OWN_FIELDS_OF_PREFECT:
            default = "required" if name in required else _default(field)
            yield f"`{name}`", _kind(field), default, prose(field.get("description", ""))


def _section(name: str, part: dict[str, Any]) -> str:
    return f"### {name}\n\n{prose(part.get('description', ''))}\n\n{_table(part)}"


def _block(block: type[GridBlock]) -> str:
    schema = block.model_json_schema()
    text = prose(block.__doc__ or "")
    return f"## {block.__name__}\n\nSlug: `{block.get_block_type_slug()}`. {text}\n\n{_table(schema)}"


def _table(part: dict[str, Any]) -> str:
    return table(("field", "kind", "default", "means"), rows(part))


def _kind(field: dict[str, Any]) -> str:
    """Return the kind of value in words: a type, the name of an object, or the values that are allowed."""
    if "enum" in field or "const" in field:
        return " or ".join(code(value) for value in field.get("enum", [field.get("const")]))
    if reference := field.get("$ref") or next((one["$ref"] for one in field.get("allOf", ()) if "$ref" in one), ""):
        name = reference.rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if options := field.get("anyOf"):
        return " or ".join(dict.fromkeys(_kind(one) for one in options if one.get("type") != "null"))
    kind = field.get("type", "")
    kind = next((one for one in kind if one != "null"), "") if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return _with_limits({"string": "text", "object": "mapping"}.get(kind, kind), field)


def _with_limits(kind: str, field: dict[str, Any]) -> str:
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    limits = [f"{word} {field[key]:,}" for key, word in bounds.items() if key in field]
    return f"{kind}, {' '.join(limits)}" if limits else kind


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "" if value in (None, [], "", {}) else code(str(value).lower() if isinstance(value, bool) else value)
