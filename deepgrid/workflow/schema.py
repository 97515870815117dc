"""The workflow language as a JSON schema, with which YAML editors complete, explain and check."""

from __future__ import annotations

from typing import Any

from deepgrid.workflow.models import Definition


def json_schema() -> dict[str, Any]:
    """Draft 7, which editors know best. Rules between fields are left to `dps validate`."""
    schema = Definition.model_json_schema(by_alias=True)
    _tidy(schema)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "deepgrid job", **schema}


def _tidy(part: Any) -> None:
    """Leave out what only repeats names; say all descriptions in one line; let optional fields be null."""
    if isinstance(part, dict):
        if isinstance(part.get("title"), str):
            del part["title"]
        if isinstance(part.get("description"), str):
            part["description"] = " ".join(part["description"].split())
        if "$ref" in part and part.get("description"):
            part["allOf"] = [{"$ref": part.pop("$ref")}]  # beside a reference, draft 7 overlooks everything
        if "default" in part and part.get("type") in ("boolean", "array"):
            part["type"] = [part["type"], "null"]
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _tidy(inner)
