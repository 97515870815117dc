"""No value of a parameter makes a scheduled flow do harm: the flow, `prefect deployment run` and the UI refuse it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ParameterTypeError
from prefect.settings import PREFECT_API_URL

from deployments.onemachine.parties.registration import create_deployments
from deployments.release import release
from tests.temporary_prefect import temporary_prefect

REPOSITORY = Path(__file__).parents[2]
PREFECT = [sys.executable, "-m", "prefect", "--no-prompt"]
ROLES = ("operator", "provider")
NAME = "bounded"
HARMFUL: dict[str, dict[str, tuple[object, ...]]] = {
    "collect_zombies": {"grace_s": (4, -60, 601), "keep_days": (1, 0, -1, 3651)},
    "expire_claims": {"silent_hours": (23, 0, -1, 721)},
    "auto_top_up": {"ahead_minutes": (2, -1, 1441)},
    "prune_history": {"keep_days": (0, -1, 3651), "keep_rounds_hours": (0, -1, 8761)},
    "reconcile_billing": {
        "tolerance_minutes": (-1, 61),
        "retry_minutes": (-1, 241),
        "since": ("yesterday",),
        "until": ("2026-02-30",),
    },
    "benchmark_cluster": {"programs": (["hpl"] * 6, ["rm"])},
    "register_provider": {"wait_minutes": (-1, 1441)},
    "run_job": {"job_id": (0, -1), "claimed_at": (0, -1)},
}
ALWAYS_REFUSED: tuple[object, ...] = (float("nan"), float("inf"), "", "many")
REQUIRED = {"cluster": "a", "operator": "a", "job_id": 1, "claimed_at": 1}


@cache
def deployed() -> dict[str, tuple[Flow[Any, Any], dict[str, Any]]]:
    """Return the flows of the roles, each with its deployment as it is written."""
    found = {}
    for role in ROLES:
        for one in yaml.safe_load((REPOSITORY / "deployments" / role / "prefect.yaml").read_text())["deployments"]:
            module, _, function = one["entrypoint"].rpartition(".")
            found[function] = getattr(importlib.import_module(module), function), one
    return found


def properties(flow: Flow[Any, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and schemas of the parameters; for one that may be empty, the schema of its values."""
    for name, schema in flow.parameters.properties.items():
        for one in schema.get("anyOf", [schema]):
            yield name, one


@pytest.mark.parametrize("name", HARMFUL)
def test_a_flow_refuses_values_that_do_harm(name: str) -> None:
    flow, _ = deployed()[name]
    required = {one: REQUIRED[one] for one in flow.parameters.required or []}
    flow.validate_parameters(dict(required))
    for parameter, values in HARMFUL[name].items():
        for value in (*values, *ALWAYS_REFUSED):
            with pytest.raises(ParameterTypeError, match=parameter):
                flow.validate_parameters({**required, parameter: value})


@pytest.mark.parametrize("name", [name for name, (_, one) in deployed().items() if one.get("schedules")])
def test_each_number_and_list_of_a_scheduled_flow_is_bounded(name: str) -> None:
    """This also holds for parameters that are added later."""
    for parameter, schema in properties(deployed()[name][0]):
        assert schema["type"] != "number", f"{parameter}: use whole units"
        wanted = {"integer": {"minimum", "maximum"}, "array": {"maxItems"}}.get(schema["type"], set())
        assert wanted <= schema.keys(), f"{parameter} of {name} has no bounds"


@pytest.mark.parametrize("name", deployed())
def test_the_name_of_a_block_is_one_that_a_block_can_have(name: str) -> None:
    flow, _ = deployed()[name]
    required = {one: REQUIRED[one] for one in flow.parameters.required or []}
    named = [parameter for parameter in ("cluster", "operator") if parameter in flow.parameters.properties]
    assert named
    for parameter in named:
        for value in ("", "Alpha", "a b", "../a", "a" * 51):
            with pytest.raises(ParameterTypeError, match=parameter):
                flow.validate_parameters({**required, parameter: value})


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    """Environment for commands of a Prefect with the deployments of the provider."""
    with temporary_prefect():
        env = {**os.environ, "PREFECT_API_URL": PREFECT_API_URL.value() or "", "CLUSTER": NAME}
        with get_client(sync_client=True) as client:
            for pool in ("processes", f"provider-{NAME}"):
                client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        done = command(env, "deploy", "--all", "--prefect-file", "deployments/provider/prefect.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        yield env


def command(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [*PREFECT, *words]
    return subprocess.run(argv, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("flow", "parameter", "sentence"),
    [
        ("collect_zombies", "keep_days=0", "0 is less than the minimum of 2"),
        ("collect_zombies", "grace_s=601", "601 is greater than the maximum of 600"),
        ("claim_jobs", "cluster=No", "'No' does not match"),
        ("benchmark_cluster", 'programs=["hpl","hpl","hpl","hpl","hpl","hpl"]', "is too long"),
    ],
)
def test_prefect_starts_no_run_with_such_a_value(
    server: dict[str, str], flow: str, parameter: str, sentence: str
) -> None:
    done = command(server, "deployment", "run", f"{flow}/{NAME}", "-p", parameter)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0, said
    assert sentence in said, said
    assert "Traceback" not in said
    with get_client(sync_client=True) as client:
        assert client.read_flow_runs() == []


@pytest.mark.long
def test_deployments_have_tags_a_description_and_the_commit_as_their_version(server: dict[str, str]) -> None:
    with get_client(sync_client=True) as client:
        found = {one.entrypoint: one for one in client.read_deployments()}
    assert {one.version for one in found.values()} == {release()}
    assert all(one.description for one in found.values())
    untagged = [entrypoint for entrypoint, one in found.items() if not one.tags]
    assert untagged == ["flows.run_job.run_job"]  # its runs get tags at their end
    assert set(found["flows.collect_zombies.collect_zombies"].tags) == {NAME, "upkeep"}


def test_a_quick_flow_runs_by_schedule_at_most_once_per_hour() -> None:
    """What finds work starts it otherwise, so a quiet day leaves few runs."""
    for name, (_, one) in deployed().items():
        for schedule in one.get("schedules", []):
            assert re.match(r"\d+ ", schedule["cron"]), f"{name} runs at {schedule['cron']}"


@pytest.mark.long
async def test_the_one_machine_grid_creates_the_deployments_that_prefect_deploy_creates(
    server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends fewer requests, so it starts sooner."""
    monkeypatch.chdir(REPOSITORY)
    async with get_client() as client:
        await client.create_work_pool(WorkPoolCreate(name="provider-direct", type="process"))
        await create_deployments(client, "provider", "CLUSTER", "direct")
        found = await client.read_deployments()
    made = {name: sorted(_comparable(one) for one in found if one.name == name) for name in (NAME, "direct")}
    assert made["direct"] == [text.replace(NAME, "direct") for text in made[NAME]]
    assert len(made["direct"]) == len(found) / 2 > 0


def _comparable(deployment: DeploymentResponse) -> str:
    """Return all fields of a deployment as text, except those that differ between any two."""
    ids = {"id", "created", "updated", "work_queue_id", "labels", "concurrency_limit_id"}
    fields = deployment.model_dump(mode="json", exclude=ids)
    for one in [*fields["schedules"], fields["global_concurrency_limit"] or {}]:
        for name in ("id", "created", "updated", "deployment_id", "name"):
            one.pop(name, None)
    return json.dumps(fields, sort_keys=True)
