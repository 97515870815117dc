"""Equal jobs have equal canonical bytes; all other byte strings are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.errors import InputError
from deepgrid.workflow import (
    Definition,
    EnvVar,
    JobResources,
    Step,
    StepRun,
    StepRunResources,
    canonical,
    from_canonical,
    hash_definition,
    parse,
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
env = st.lists(st.builds(EnvVar, key=st.sampled_from(["A", "B_1", "_c"]), value=texts), max_size=3).map(tuple)
resources = st.none() | st.builds(StepRunResources, tasks=st.none() | st.integers(1, 2))
runs = st.builds(
    StepRun, command=texts, shell=st.sampled_from([None, "/bin/sh", "/bin/bash"]), resources=resources, env=env,
    work_dir=st.none() | texts.map(lambda t: "/" + t),
)  # fmt: skip
jobs = st.builds(
    Definition,
    resources=st.just(JobResources(tasks=2, cpus_per_task=1, mem_per_cpu=10, gpus=0)),
    enable_logging=st.booleans(),
    env=env,
    steps=st.lists(st.builds(Step, name=st.none() | texts, run=st.none() | runs), max_size=3).map(tuple),
)


@given(jobs)
def test_a_job_survives_its_canonical_form(job: Definition) -> None:
    assert from_canonical(canonical(job)) == job


def test_spelling_does_not_change_the_bytes() -> None:
    one = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 5, gpus: 0}\nsteps: [{run: {command: é}}]"
    other = '{"steps": [{"run": {"env": [], "shell": null, "command": "\\u00e9"}}], "env": null,\n' + (
        '"resources": {"gpus": 0, "memPerCpu": 5, "cpusPerTask": 1, "tasks": 1}}'
    )
    content = canonical(parse(one, "a").model)
    assert content == canonical(parse(other, "b").model)
    assert content.decode() == (
        '{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1},"steps":[{"run":{"command":"é"}}]}'
    )


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"[]", b"{}", b"[" * 100_000,
        b'{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1},"steps":[] }',
        b'{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1.0},"steps":[]}',
        b'{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1},"steps":[],"steps":[]}',
        b'{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1},"steps":[{"run":{"command":"\\ud800"}}]}',
        b"0" * (256 * 1024 + 1),
    ],
)  # fmt: skip
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        from_canonical(content)


def test_an_oversized_definition_is_refused() -> None:
    step = Step(run=StepRun(command="x" * 100_000))
    job = Definition(resources=JobResources(tasks=1, cpus_per_task=1, mem_per_cpu=1, gpus=0), steps=(step, step, step))
    with pytest.raises(InputError, match="larger than 256 KiB"):
        canonical(job)


def test_the_definition_hash_is_fixed_and_salted() -> None:
    salt = bytes(range(32))
    assert hash_definition(salt, b"{}") == "03e5fd7cc8172aebc5ef811c7281ab1186d67f7c094e558b552e2b227065aece"
    assert hash_definition(salt, b"{}") != hash_definition(bytes(32), b"{}")
    with pytest.raises(ValueError, match="32 bytes"):
        hash_definition(b"short", b"{}")
