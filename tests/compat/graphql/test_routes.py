"""Submissions over HTTP: the stored definition, and the answers to faults and refusals."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.services.app import ServicesSettings
from deepgrid.services.serve import serve
from tests.compat.graphql.support import (
    RESOURCES,
    SUBMIT,
    VALIDATE,
    WHOLE_MODULE,
    ask,
    job_with,
    post,
    run_with,
)
from tests.services.support import Grid, Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_is_stored_under_the_hash_of_the_answer(start: Start) -> None:
    grid = await start(debug_scripts=True)
    found = await ask(grid, SUBMIT, job=run_with(command="echo one"))
    name = found["data"]["submit"]
    assert len(bytes.fromhex(name)) == 32
    assert "errors" not in found
    again = await ask(grid, SUBMIT, job=run_with(command="echo one"))
    assert again["data"]["submit"] != name, "each submission has a salt of its own"
    script = await ask(grid, "query Job($h: String!) { job(batchLocationHash: $h) }", h=name)
    assert "echo one" in script["data"]["job"]


async def test_go_clients_omit_the_name_of_the_operation(grid: Grid) -> None:
    answer = await post(grid, {"query": SUBMIT, "variables": {"job": job_with()}}, {"Accept": "*/*"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    named = {"query": SUBMIT, "variables": {"job": job_with()}, "operationName": "Submit"}
    for name in ("Submit", "", None):
        assert len((await post(grid, named | {"operationName": name})).json()["data"]["submit"]) == 64


async def test_a_job_may_be_written_into_the_document(grid: Grid) -> None:
    resources = "{tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}"
    inline = f'mutation {{ submit(job: {{resources: {resources}, env: null, steps: [{{run: {{command: "true"}}}}]}}) }}'
    assert len((await ask(grid, inline))["data"]["submit"]) == 64


async def test_each_fault_has_an_entry_with_the_sentence_of_a_workflow_file(grid: Grid) -> None:
    job = job_with(env=[{"key": "a b", "value": ""}], steps=[{"run": {"command": "x", "shell": "bash"}}])
    answer = await post(grid, {"query": SUBMIT, "variables": {"job": job}})
    assert answer.status_code == 200
    found = answer.json()
    assert found["data"] is None
    assert [entry["message"] for entry in found["errors"]] == [
        "env[0].key: must be letters, digits and '_', not starting with a digit",
        "steps[0].run.shell: 'bash' is not one of /bin/bash, /bin/ash, /bin/sh, ENTRYPOINT (did you mean /bin/bash?)",
    ]
    assert found["errors"][1]["path"] == ["submit"]
    assert found["errors"][1]["extensions"] == {
        "type": "validation",
        "tag": "oneof",
        "namespace": "Job.Steps[0].Run.Shell",
        "field": "Shell",
        "original_message": "Key: 'Job.Steps[0].Run.Shell' Error:"
        "Field validation for 'Shell' failed on the 'oneof' tag",
    }


async def test_a_condition_that_bash_cannot_read_is_a_fault(grid: Grid) -> None:
    steps = [{"if": "[ $A = 1 ]", "run": {"command": "true"}}]
    (entry,) = (await ask(grid, SUBMIT, job=job_with(steps=steps)))["errors"]
    assert entry["extensions"]["type"] == "validation"
    assert entry["message"].startswith("steps[0].if: is not a test that bash's [[ ]] can evaluate")


async def test_a_fault_of_the_script_is_one_of_the_job(grid: Grid) -> None:
    steps = [{"run": {"command": "echo hi", "container": {"image": "a"}}}] * 500
    (entry,) = (await ask(grid, SUBMIT, job=job_with(steps=steps)))["errors"]
    assert entry["extensions"]["type"] == "validation"
    assert entry["extensions"]["tag"] == "script"
    assert "of batch script: use fewer steps" in entry["message"]


async def test_modules_come_from_listed_hosts_only(grid: Grid) -> None:
    (entry,) = (await ask(grid, SUBMIT, job=job_with(steps=[{"use": {"source": "git.example/a/b@v1"}}])))["errors"]
    assert entry["path"] == ["submit"]
    assert entry["extensions"]["type"] == "validation"
    assert "steps[0].use.source" in entry["message"]


async def test_a_module_is_valid_or_its_faults_are_told(grid: Grid) -> None:
    assert (await ask(grid, VALIDATE, module=WHOLE_MODULE))["data"] == {"validate": "valid"}
    broken = WHOLE_MODULE | {"outputs": [{"key": "B-C", "description": "d"}]}
    said = (await ask(grid, VALIDATE, module=broken))["data"]["validate"]
    assert said == "outputs[0].key: must be letters, digits and '_', not starting with a digit"


async def test_scripts_are_not_shown(grid: Grid) -> None:
    name = (await ask(grid, SUBMIT, job=job_with()))["data"]["submit"]
    found = await ask(grid, f'{{ job(batchLocationHash: "{name}") }}')
    assert found["data"] is None
    assert found["errors"] == [
        {"message": "this service does not show batch scripts", "path": ["job"], "extensions": {"type": "internal"}}
    ]


async def test_services_that_others_reach_never_show_scripts(tmp_path: Path) -> None:
    settings = ServicesSettings(f"sqlite:///{tmp_path}/x", tmp_path / "secret", debug_scripts=True, sockets=tmp_path)
    with pytest.raises(ConfigurationError, match="could read the secrets"):
        await serve(settings)


async def test_a_silent_store_is_a_sentence(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_self: object, _content: bytes) -> bytes:
        raise RuntimeError("s3cret")

    monkeypatch.setattr(type(grid.context.vault), "seal", fail)
    with caplog.at_level(logging.DEBUG):
        found = await ask(grid, SUBMIT, job=run_with(command="echo t0psecret"))
    assert found["errors"] == [
        {"message": "the service failed (RuntimeError)", "path": ["submit"], "extensions": {"type": "internal"}}
    ]
    assert "a request failed: unexpected error (RuntimeError)" in caplog.text
    assert "s3cret" not in caplog.text
    assert "t0psecret" not in caplog.text
    assert "Traceback" not in caplog.text


WRONG = [
    ({"steps": []}, "Job", "resources"),
    (job_with(surprise=1), "surprise", "Job"),
    (run_with(command=True), "command", "String"),
    (run_with(disableCpuBinding="yes"), "disableCpuBinding", "Boolean"),
    (job_with(resources={**RESOURCES, "tasks": "one"}), "tasks", "Int"),
    (job_with(resources={**RESOURCES, "tasks": 1.5}), "tasks", "Int"),
    (job_with(resources={**RESOURCES, "tasks": 2**31}), "tasks", "Int"),
    (job_with(resources=None), "resources", "JobResources"),
    (job_with(env=[None]), "env", "EnvVar"),
    (job_with(steps=[None]), "steps", "Step"),
    (run_with(container={"image": "a", "mounts": [None]}), "mounts", "Mount"),
    (job_with(steps=[{"module": {"source": "x"}}]), "module", "Step"),
    (None, "job", "Job"),
    ([], "job", "Job"),
    ("text", "job", "Job"),
]


@pytest.mark.parametrize(("job", "where", "kind"), WRONG, ids=[f"{where} {kind}" for _, where, kind in WRONG])
async def test_what_the_types_do_not_allow_is_status_422(grid: Grid, job: object, where: str, kind: str) -> None:
    answer = await post(grid, {"query": SUBMIT, "variables": {"job": job}})
    assert answer.status_code == 422
    sentences = " ".join(entry["message"] for entry in answer.json()["errors"])
    assert where in sentences
    assert kind in sentences
