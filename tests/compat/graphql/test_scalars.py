"""Existing clients send numbers for texts and digits for numbers. Both are taken, as by the original's server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deepgrid.compat.graphql.operations import execute

SUBMIT = "mutation Submit($job: Job!) { submit(job: $job) }"


def submitted(value: Any = "x", **resources: Any) -> dict[str, Any]:
    job = {
        "resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0} | resources,
        "env": [{"key": "N", "value": value}],
        "steps": [],
    }
    return execute(json.dumps({"query": SUBMIT, "variables": {"job": job}}).encode())


@pytest.mark.parametrize(("value", "kept"), [(50, "50"), (0, "0"), (-1.5, "-1.5"), ("50", "50"), (2**62, str(2**62))])
def test_a_number_becomes_a_text(value: Any, kept: str) -> None:
    (need,) = submitted(value)["needs"]
    assert json.loads(need["store"])["env"] == [{"key": "N", "value": kept}]


@pytest.mark.parametrize(("value", "kept"), [("2", 2), (2, 2), (2.0, 2), ("+2", 2)])
def test_the_digits_of_a_whole_number_become_the_number(value: Any, kept: int) -> None:
    (need,) = submitted(tasks=value)["needs"]
    assert json.loads(need["store"])["resources"]["tasks"] == kept


@pytest.mark.parametrize("value", [True, ["x"], {"x": 1}])
def test_other_values_are_no_texts(value: Any) -> None:
    answer = submitted(value)
    assert answer["status"] == 422
    assert "String cannot represent" in answer["content"]["errors"][0]["message"]


@pytest.mark.parametrize("value", ["two", "2.5", 2.5, "", True, "99999999999", "2" * 5000])
def test_other_values_are_no_numbers(value: Any) -> None:
    answer = submitted(tasks=value)
    assert answer["status"] == 422
    assert "Int cannot represent" in answer["content"]["errors"][0]["message"]


def test_the_gpus_of_older_files_get_a_hint() -> None:
    (error,) = submitted(gpusPerTask=1)["content"]["errors"]
    assert error["message"] == (
        "resources.gpusPerTask: did you mean 'gpus'? It is the number of GPUs of the whole job."
    )
