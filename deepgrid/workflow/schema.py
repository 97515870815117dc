"""The JSON schema of the workflow language, for completion, help and checks in YAML editors."""

from __future__ import annotations

from typing import Any

from deepgrid.workflow.models import Definition
from deepgrid.workflow.yaml_nodes import HOLDER


def json_schema() -> dict[str, Any]:
    """Return the schema in draft 7, which editors support best. `dps validate` checks the rules between fields."""
    schema = Definition.model_json_schema(by_alias=True)
    schema["patternProperties"] = {f"^{HOLDER}": {"description": "Holds anchors (&NAME) for the rest of the file."}}
    _tidy(schema)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "deepgrid job", **schema}


def _tidy(part: Any) -> None:
    """Drop titles that repeat names, put descriptions on one line, and let values be as people write them."""
    if isinstance(part, dict):
        if isinstance(part.get("title"), str):
            del part["title"]
        if isinstance(part.get("description"), str):
            part["description"] = " ".join(part["description"].split())
        if "$ref" in part and part.get("description"):
            part["allOf"] = [{"$ref": part.pop("$ref")}]  # draft 7 ignores everything next to a reference
        if part.get("type") == "string" and "enum" not in part and "const" not in part:
            part["type"] = ["string", "number", "boolean"]  # a text without quotes, such as 8080, is taken as it is
        if "default" in part and part.get("type") in ("boolean", "array"):
            part["type"] = [part["type"], "null"]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _tidy(inner)
