"""The marks of the JSON schema for web pages: secret values, and values that equal their default."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deepgrid.workflow import canonical, load
from deepgrid.workflow.schema import json_schema

SCHEMA = json_schema()
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
LOOKS_SECRET = re.compile(r"secret|passw|passphrase|token|credential|(private|shared|access)_?key|api_?key", re.I)
MARKED = {
    "Bore.secret", "ContainerRun.password", "S3Data.secretAccessKey", "Wireguard.privateKey",
    "WireguardPeer.preSharedKey",
}  # fmt: skip
NOT_SECRET = {"S3Data.accessKeyId": "it names the key, and opens nothing without the secret"}


def test_secret_fields_are_marked() -> None:
    """The web app replaces these values, so an unmarked one would be sent to a host."""
    parts = {"Definition": SCHEMA, **SCHEMA["$defs"]}
    fields = {f"{name}.{field}": told for name, part in parts.items() for field, told in part["properties"].items()}
    assert {field for field, told in fields.items() if told.get("x-secret") is True} == MARKED
    suspects = {field for field in fields if LOOKS_SECRET.search(field.partition(".")[2])}
    assert suspects == MARKED | NOT_SECRET.keys(), "Mark the field with SECRET, or say in NOT_SECRET why it is none"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_canonical_form_follows_from_the_defaults_of_the_schema(path: Path) -> None:
    """A page can make the canonical form from the schema alone: it leaves out values that equal their default."""
    job = load(path).model
    whole = job.model_dump(mode="json", by_alias=True)
    content = json.dumps(without_defaults(whole, SCHEMA), sort_keys=True, separators=(",", ":"),
                         ensure_ascii=False)  # fmt: skip
    assert content.encode() == canonical(job)


def without_defaults(value: Any, part: dict[str, Any]) -> Any:
    part = resolved(part)
    if isinstance(value, list):
        return [without_defaults(one, part["items"]) for one in value]
    if not isinstance(value, dict):
        return value
    fields = part["properties"]
    kept = {name: one for name, one in value.items() if "default" not in fields[name] or one != fields[name]["default"]}
    return {name: without_defaults(one, fields[name]) for name, one in kept.items()}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part itself, or what it refers to, or the one alternative that is not null."""
    for alternatives in ("anyOf", "allOf"):
        if alternatives in part:
            return resolved(next(one for one in part[alternatives] if one.get("type") != "null"))
    return SCHEMA["$defs"][part["$ref"].removeprefix("#/$defs/")] if "$ref" in part else part
