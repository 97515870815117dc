"""A definition without its secrets is a workflow file again, once they are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deepgrid.errors import InputError
from deepgrid.modules import load
from deepgrid.workflow import canonical, parse
from deepgrid.workflow.as_file import as_file
from deepgrid.workflow.masking import fill_secrets, mask_secrets, masked_places, secret_fields

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
ADDRESS = "https://me:pw@data.example/a.zip?X-Amz-Signature=1#k"
VARIABLES = {"HF_TOKEN": "hf_1", "TOKENS": "8", "DB_PASSWORD": "p"}
VALUES: dict[str, Any] = {
    "env": [{"key": key, "value": value} for key, value in VARIABLES.items()],
    "input": {"http": {"url": ADDRESS}},
    "output": {"s3": {"secretAccessKey": "s3cret", "accessKeyId": "id", "endpointUrl": "http://s3.example"}},
}
PLACES = ["env.HF_TOKEN", "env.DB_PASSWORD", "input.http.url", "output.s3.secretAccessKey"]


def test_secrets_are_masked_and_nothing_else() -> None:
    hidden = json.loads(mask_secrets(json.dumps(VALUES).encode()))
    assert masked_places(hidden) == PLACES
    assert hidden["env"][0]["value"] == "***"
    assert hidden["env"][1]["value"] == "8"
    assert hidden["input"]["http"]["url"] == "https://***@data.example/a.zip?***#***"
    assert hidden["output"]["s3"] == {
        "secretAccessKey": "***", "accessKeyId": "id", "endpointUrl": "http://s3.example",
    }  # fmt: skip
    assert json.loads(mask_secrets(json.dumps(hidden).encode())) == hidden


def test_a_masked_secret_must_be_given_again() -> None:
    hidden = json.loads(mask_secrets(json.dumps(VALUES).encode()))
    given = {"env.HF_TOKEN": "hf_1", "env.DB_PASSWORD": "p", "input.http.url": ADDRESS}
    with pytest.raises(InputError, match=r"secret output\.s3\.secretAccessKey of the job is not kept"):
        fill_secrets(hidden, given)
    assert fill_secrets(hidden, given | {"output.s3.secretAccessKey": "s3cret"}) == VALUES


def test_the_schema_names_the_secret_fields() -> None:
    assert secret_fields() == {"preSharedKey", "privateKey", "secretAccessKey", "password", "secret"}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_file_of_a_definition_gives_that_definition(file: Path) -> None:
    content = canonical(load(file).model)
    assert canonical(parse(as_file(json.loads(content)), "again.yaml").model) == content


COMMANDS = ["a\n  b\n", "  a\nb", "a\tb\n\nc", "a \nb", "x", "\u00e9\n\u2028", "- a: b\n", "no"]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_come_back_as_they_were(command: str) -> None:
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 128, "gpus": 0}
    values = {"resources": resources, "steps": [{"run": {"command": command}}]}
    text = as_file(values)
    assert parse(text, "again.yaml").model.steps[0].run.command == command  # type: ignore[union-attr]
    assert text.startswith("resources:\n  tasks: 1\n")


def test_a_file_that_hides_a_secret_is_refused() -> None:
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 128, "gpus": 0}
    steps = [{"run": {"command": "echo '***'"}}]
    assert parse(as_file({"resources": resources, "steps": steps}), "job.yaml")
    hidden = as_file({"resources": resources, "env": [{"key": "HF_TOKEN", "value": "***"}], "steps": steps})
    with pytest.raises(InputError, match=r"job\.yaml: env\.HF_TOKEN: is hidden by \*\*\*"):
        parse(hidden, "job.yaml")
