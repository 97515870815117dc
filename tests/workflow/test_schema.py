"""The JSON schema has the same rules as the models, so editors and `dps validate` agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deepgrid.workflow import models, parse
from deepgrid.workflow.models import Definition
from deepgrid.workflow.schema import json_schema
from tests.workflow.support import ACCEPTED, JOB, REFUSED

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
# Rules between fields, and rules without a pattern. These are left to `dps validate`.
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
BEYOND += ("PATH and", "bucketUrl: must be", "endpointUrl", "must be text")


def definition(name: str) -> dict[str, Any]:
    """Return the part of the schema for one model, with resolvable references."""
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


def test_files_as_people_write_them_follow_the_schema() -> None:
    """Editors read 8080 and true as a number and a boolean, not as text."""
    text = """\
x-base: &base {shell: /bin/bash, env: [{key: A, value: 8080}, {key: B, value: true}]}
inputMode: 0400
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
steps: [{name: 1, run: {<<: *base, command: true}}, {for: {parallel: true, items: [1, 2.5], steps: []}}]
"""
    jsonschema.validate(yaml.safe_load(text), json_schema())
    assert parse(text, "job.yaml").model.env == ()
