"""The JSON schema has the same rules as the models, so editors and `dps validate` agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deepgrid.workflow import canonical, load, models
from deepgrid.workflow.models import Definition
from deepgrid.workflow.schema import json_schema
from tests.workflow.support import ACCEPTED, JOB, REFUSED

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
# Rules between fields, and those that no pattern says: these are left to `dps validate`.
BEYOND = (
    "needs",
    "both",
    "has ",
    "exactly one",
    "deepsquareHosted",
    "keep bore",
    "IP address",
    "host:port",
    "http.url",
)
BEYOND += ("PATH and", "bucketUrl: must be", "endpointUrl")


def definition(name: str) -> dict[str, Any]:
    """The part of the schema for one model, with resolvable references."""
    whole = json_schema()
    return whole if name == "Definition" else {**whole["$defs"][name], "$defs": whole["$defs"]}


def objects(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield part
        for inner in part.values():
            yield from objects(inner)


def test_every_field_is_described_and_no_other_is_allowed() -> None:
    for part in objects(json_schema()):
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            assert field.get("description"), name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_follow_the_schema(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), json_schema())


@pytest.mark.parametrize(("model", "value"), ACCEPTED, ids=lambda part: str(part)[:60])
def test_what_the_models_accept_the_schema_accepts(model: type[models.Model], value: Any) -> None:
    if model is not models.Module:
        jsonschema.validate(json.loads(json.dumps(value)), definition(model.__name__))


@pytest.mark.parametrize(("model", "value", "sentence"), REFUSED, ids=lambda part: str(part)[:60])
def test_what_a_field_forbids_the_schema_forbids(model: type[models.Model], value: Any, sentence: str) -> None:
    if model is models.Module or any(word in sentence for word in BEYOND) or "\\n" in json.dumps(value):
        return
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(json.dumps(value)), definition(model.__name__))


def test_a_minimal_job_follows_the_schema() -> None:
    jsonschema.validate(JOB, json_schema())
    assert Definition.model_validate(JOB, by_alias=True, by_name=False).steps == ()


LOOKS_SECRET = re.compile(r"secret|passw|passphrase|token|credential|(private|shared|access)_?key|api_?key", re.I)
MARKED = {
    "Bore.secret", "ContainerRun.password", "S3Data.secretAccessKey", "Wireguard.privateKey",
    "WireguardPeer.preSharedKey",
}  # fmt: skip
NOT_SECRET = {"S3Data.accessKeyId": "it names the key, and opens nothing without the secret"}


def test_secret_fields_are_marked() -> None:
    """The web app puts stand-ins for these values, so an unmarked one would be sent to a host."""
    parts = {"Definition": json_schema(), **json_schema()["$defs"]}
    fields = {f"{name}.{field}": told for name, part in parts.items() for field, told in part["properties"].items()}
    assert {field for field, told in fields.items() if told.get("x-secret") is True} == MARKED
    suspects = {field for field in fields if LOOKS_SECRET.search(field.partition(".")[2])}
    assert suspects == MARKED | NOT_SECRET.keys(), "Mark the field with SECRET, or say in NOT_SECRET why it is none"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_canonical_form_follows_from_the_defaults_of_the_schema(path: Path) -> None:
    """A page can make the canonical form from the schema alone: it leaves out what equals its default."""
    job = load(path).model
    whole = job.model_dump(mode="json", by_alias=True)
    content = json.dumps(without_defaults(whole, json_schema()), sort_keys=True, separators=(",", ":"),
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
    """The part itself, or what it refers to, or the one alternative that is not null."""
    for alternatives in ("anyOf", "allOf"):
        if alternatives in part:
            return resolved(next(one for one in part[alternatives] if one.get("type") != "null"))
    return definition(part["$ref"].removeprefix("#/$defs/")) if "$ref" in part else part
