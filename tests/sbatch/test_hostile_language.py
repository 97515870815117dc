"""Whatever text stands in any field, a script keeps its shape: nothing of it is executed, all of it arrives.

`command` and `if` are code by design, so `if` is left out here. `srun` and `s5cmd` are recorders that run nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepgrid.workflow import Job, Step, StepRun, canonical, from_canonical
from deepgrid.workflow.models import S3Data, StepAsyncLaunch, StepFor, TransportData
from tests.sbatch.test_hostile_text import FIGURES, NAMES, hostile, variables
from tests.sbatch.test_script import Bench

S5CMD = """#!/bin/sh
cat /proc/$$/environ >{root}/s5cmd.env
cat /proc/$$/cmdline >{root}/s5cmd.argv
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("recorder"), execute=False)
    program = bench.root / "bin" / "s5cmd"
    program.write_text(S5CMD.format(root=bench.root))
    program.chmod(0o755)
    return bench


def steps_of(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Step]:
    """Steps of every kind that calls srun exactly once an item, whatever the texts are."""
    env = st.dictionaries(st.sampled_from(NAMES), texts, max_size=2).map(variables)
    names, folders = st.none() | texts, st.none() | texts.map(lambda text: "/" + text)
    run = st.builds(
        Step, name=names, run=st.builds(StepRun, command=texts, env=env, work_dir=folders), catch=st.just(())
    )
    bodies = st.lists(run, min_size=1, max_size=2).map(tuple)
    kept = st.builds(StepAsyncLaunch, signal_on_parent_step_exit=st.just(0), steps=bodies)
    loop = st.builds(StepFor, parallel=st.booleans(), items=st.lists(texts, max_size=3).map(tuple), steps=bodies)
    return (
        run
        | st.builds(lambda name, steps, after: Step(name=name, steps=steps, finally_=after), names, bodies, bodies)
        | st.builds(lambda name, loop, after: Step(name=name, for_=loop, catch=after), names, loop, bodies)
        | st.builds(lambda name, launch: Step(name=name, launch=launch), names, kept)
    )


def buckets(texts: st.SearchStrategy[str]) -> st.SearchStrategy[S3Data]:
    paths = texts.map(lambda text: "/" + text)
    return st.tuples(texts, paths, texts, texts).map(
        lambda four: S3Data(
            region=four[0],
            bucket_url="s3://bucket",
            path=four[1],
            access_key_id=four[2],
            secret_access_key=four[3],
            endpoint_url="http://127.0.0.1:1",
        )
    )


def expected(steps: tuple[Step, ...], item: str | None = None) -> list[tuple[str, str | None]]:
    """Each command that is to run, with the value of $item there; in no order."""
    calls: list[tuple[str, str | None]] = []
    for step in steps:
        if step.run:
            calls.append((step.run.command, item))
        for value in step.for_.items or () if step.for_ else ():
            calls += expected(step.for_.steps, value) if step.for_ else []
        calls += expected(step.steps, item) + expected(step.finally_, item)
        calls += expected(step.launch.steps, item) if step.launch else []
    return calls


def check(recorder: Bench, data: st.DataObject) -> None:
    canary = recorder.root / "canary"
    texts = hostile(str(canary))
    steps = data.draw(st.lists(steps_of(texts), min_size=1, max_size=3).map(tuple))
    bucket = data.draw(buckets(texts))
    job = Job(resources=FIGURES, steps=steps, output=TransportData(s3=bucket))
    outcome = recorder.run(from_canonical(canonical(job)))

    assert outcome.status == 0, outcome.output
    ran = [(call.argv[-1].decode(), call.env.get(b"item", b"").decode()) for call in outcome.calls]
    assert sorted(ran) == sorted((command, item or "") for command, item in expected(steps))
    argv = (recorder.root / "s5cmd.argv").read_bytes().split(b"\0")
    assert argv[argv.index(b"--destination-region") + 1] == bucket.region.encode()
    assert argv[-2] == b"s3://bucket" + bucket.path.rstrip("/").encode() + b"/"
    env = dict(pair.split(b"=", 1) for pair in (recorder.root / "s5cmd.env").read_bytes().split(b"\0") if pair)
    assert env[b"AWS_SECRET_ACCESS_KEY"] == bucket.secret_access_key.encode()
    assert env[b"AWS_ACCESS_KEY_ID"] == bucket.access_key_id.encode()
    assert not canary.exists()
    assert recorder.left_behind() == []


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_hostile_fields_change_nothing_but_themselves(recorder: Bench, data: st.DataObject) -> None:
    check(recorder, data)


@pytest.mark.deep
@pytest.mark.timeout(0)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_ten_thousand_hostile_definitions(recorder: Bench, data: st.DataObject) -> None:
    check(recorder, data)


def test_the_recorder_would_see_what_is_executed(recorder: Bench, tmp_path: Path) -> None:
    """`if` is code: what it touches is there, so a canary elsewhere would be seen as well."""
    step = Step(if_=f"-z $(touch {tmp_path}/canary)", run=StepRun(command="x"))
    assert recorder.run(Job(resources=FIGURES, steps=(step,))).status == 0
    assert (tmp_path / "canary").exists()
