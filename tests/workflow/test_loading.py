"""A workflow file becomes a checked job, or an error with the place of every fault."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.errors import InputError
from deepgrid.workflow import Definition, Step, StepRun, load, parse
from deepgrid.workflow.advice import advice_on
from deepgrid.workflow.models import ContainerRun, Mount, StepFor

RESOURCES = "resources: {tasks: 2, cpusPerTask: 2, memPerCpu: 100, gpus: 1}\n"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def job(steps: str, head: str = "") -> Definition:
    return parse(RESOURCES + head + f"steps: {steps}\n", "job.yaml").model


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "job.yaml")
    return caught.value.message.splitlines()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_load(path: Path) -> None:
    assert load(path).model.steps
    assert load(path).source_text.startswith("# ")


def test_every_fault_is_named_at_once_with_its_place() -> None:
    text = """\
resources: {tasks: 0, cpusPerTask: 1, memPerCpu: 128}
env:
  - {key: a b, value: x}
  - null
steps:
  - name: first
    run:
      comand: x
      shell: /bin/zsh
      workDir: rel
"""
    assert faults(text) == [
        "job.yaml:1:12: resources.gpus: is required",
        "job.yaml:1:20: resources.tasks: must be at least 1",
        "job.yaml:3:11: env[0].key: must be letters, digits and '_', not starting with a digit",
        "job.yaml:4:5: env[1]: must be a mapping of fields",
        "job.yaml:8:7: steps[0].run.comand: unknown field (did you mean 'command'?)",
        "job.yaml:8:7: steps[0].run.command: is required",
        "job.yaml:9:14: steps[0].run.shell: '/bin/zsh' is not one of /bin/bash, /bin/ash, /bin/sh, ENTRYPOINT"
        " (did you mean /bin/sh?)",
        "job.yaml:10:16: steps[0].run.workDir: must start with '/'",
    ]


def test_disagreements_are_reported_with_the_faults_of_fields() -> None:
    text = """\
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}
inputMode: 512
steps:
  - launch: {handleName: a, steps: [], signalOnParentStepExit: 99}
    run: {command: x, shell: zsh}
  - dependsOn: [b]
    run: {command: x, shell: ENTRYPOINT, resources: {cpusPerTask: 2}, mpi: openmpi}
  - dependsOn: a
    for: {parallel: true, items: [x], range: {begin: 1, end: 5000}, steps: [{nam: x}]}
input: {http: {url: nowhere}, s3: {}}
"""
    found = [line.removeprefix("job.yaml:") for line in faults(text)]
    assert [line for line in found if ": input.s3" not in line] == [
        "2:12: inputMode: must be at most 511 (0777 in octal)",
        "4:5: steps[0]: has run and launch; a step has at most one of steps, run, for, launch, use",
        "4:64: steps[0].launch.signalOnParentStepExit: '99' is not one of 0, 1, 2, 3, 9, 10, 12, 14, 15",
        "5:30: steps[0].run.shell: 'zsh' is not one of /bin/bash, /bin/ash, /bin/sh, ENTRYPOINT",
        "6:17: steps[1].dependsOn[0]: no step launches b",
        "7:10: steps[1].run: has the shell ENTRYPOINT, which needs a container",
        "7:53: steps[1].run.resources: asks for 2 CPUs in all, the job has 1",
        "7:53: steps[1].run.resources: asks for 200 MB of memory in all, the job has 100",
        "7:76: steps[1].run.mpi: 'openmpi' is not one of none, pmix_v4, pmi2",
        "8:16: steps[2].dependsOn: must be a list",
        "9:10: steps[2].for: has both items and range; keep one of them",
        "9:10: steps[2].for: must not start more than 1000 iterations at once",
        "9:78: steps[2].for.steps[0].nam: unknown field (did you mean 'name'?)",
        "10:8: input: has both http and s3; keep one of them",
        "10:21: input.http.url: must be an address that starts with http:// or https://",
    ]


def test_rules_with_malformed_parts_are_skipped() -> None:
    text = """\
resources: {tasks: 0, cpusPerTask: 1, memPerCpu: 100, gpus: 0}
steps:
  - launch: {handleName: a-b, steps: []}
  - dependsOn: [ab]
  - dependsOn: [null, ab]
    run: {command: x, network: bridge, dns: [1.1.1.1], resources: {tasks: 5}}
"""
    assert [line.split(": ")[1] for line in faults(text)] == [
        "resources.tasks", "steps[0].launch.handleName", "steps[2].dependsOn[0]", "steps[2].run.network",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "key", ["", "a b", "a'b", "1a", "é", "PATH", "LD_LIBRARY_PATH", "UID", "RANDOM", "_", "__dg_x"]
)
def test_env_names_that_cannot_reach_a_process_are_refused(key: str) -> None:
    assert "env[0].key" in faults(RESOURCES + f"env: [{{key: {key!r}, value: x}}]\nsteps: []\n")[0]


@pytest.mark.parametrize(
    ("value", "kept"),
    [("yes", "yes"), ("2024-01-01", "2024-01-01"), ("1:30", "1:30"), ("'5'", "5"), ("''", ""), ('"a\\nb"', "a\nb")],
)
def test_text_stays_as_written(value: str, kept: str) -> None:
    assert job("[]", f"env: [{{key: A, value: {value}}}]\n").env[0].value == kept


@pytest.mark.parametrize("value", ["null", "[]", "{}", '"\\0"', '"\\ud800"', "~", ""])
def test_values_that_are_not_text_are_refused(value: str) -> None:
    assert "env[0].value" in faults(RESOURCES + f"env: [{{key: A, value: {value}}}]\nsteps: []\n")[0]


@pytest.mark.parametrize("number", ["0", "-1", "1.0", "'1'", "true", "0x1", "010", "100000001", "9" * 5000])
def test_counts_are_whole_numbers_within_bounds(number: str) -> None:
    text = RESOURCES.replace("tasks: 2", f"tasks: {number}") + "steps: []\n"
    assert "job.yaml:1:20: resources.tasks: " in faults(text)[0]
    assert "must be" in faults(text)[0]


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ("{tasks: 5, cpusPerTask: 1}", "asks for 5 CPUs in all, the job has 4"),
        ("{cpusPerTask: 5, memPerCpu: 1}", "asks for 5 CPUs in all, the job has 4"),
        ("{memPerCpu: 201}", "asks for 402 MB of memory in all, the job has 400"),
        ("{tasks: 2, gpusPerTask: 1}", "asks for 2 GPUs in all, the job has 1"),
    ],
)
def test_a_step_must_fit_into_its_job(resources: str, message: str) -> None:
    text = RESOURCES + f"steps:\n- run: {{command: x}}\n- run: {{command: x, resources: {resources}}}\n"
    found = faults(text)
    assert f"job.yaml:4:32: steps[1].run.resources: {message}" in found


def test_absent_step_figures_come_from_the_job() -> None:
    loaded = job("[{run: {command: x}}, {run: {command: x, resources: {tasks: 4, cpusPerTask: 1, memPerCpu: 7}}}]")
    first, second = (step.run.resources_in(loaded.resources) for step in loaded.steps if step.run)
    assert (first.tasks, first.cpus_per_task, first.mem_per_cpu, first.gpus) == (1, 2, 100, 0)
    assert (second.tasks, second.cpus_per_task, second.mem_per_cpu, second.gpus) == (4, 1, 7, 0)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [", "job.yaml:1:5: "),
        ("a: 1\nb: 'x", "job.yaml:2:6: "),
        ("a: 1\n\tb: 2", "job.yaml:2:1: "),
        ("a: {b: 1, b: 2}", "job.yaml:1:11: duplicate field 'b'"),
        ("a: *b", "job.yaml:1:4: *b repeats a value that no &b above marks"),
        ("a: &x 1\nb: &x 2", "job.yaml:2:4: &x marks a second value"),
        ("a: [1, 2\nb: 3", "job.yaml:2:2: the list that [ opens in line 1, column 4 is not closed"),
        ("{a: 1", "job.yaml:1:6: the mapping that { opens in line 1, column 1 is not closed"),
        ('a: "x\\q"', "job.yaml:1:7: \\q means nothing in double quotes"),
        ("a: @x", "job.yaml:1:4: a value that begins with @ must be in quotes"),
        ("a: |x\n b", "job.yaml:1:5: the text of | or > begins on the next line"),
        ("a: ]", "job.yaml:1:4: a value is expected here, not ]"),
        ("a: \x01", "job.yaml:1:4: YAML does not allow the character U+0001"),
        ("x: !!python/object/apply:os.system [id]", "job.yaml:1:4: tags"),
        ("x: !!int '5'", "job.yaml:1:4: tags"),
        ("--- {}\n--- {}", "job.yaml:2:1: a second document begins here"),
        ("? [a]\n: b", "job.yaml:1:3: a field name must be plain text"),
        ("", "job.yaml:1:1: the file is empty"),
        ("- a", "job.yaml:1:1: the job: must be a mapping of fields"),
        ("text", "job.yaml:1:1: the job: must be a mapping of fields"),
        ("a: &x [*x]", "job.yaml:1:8: an alias cannot repeat the value that it is part of"),
    ],
)
def test_broken_yaml_is_named_with_line_and_column(text: str, place: str) -> None:
    assert faults(text)[0].startswith(place)


def test_a_job_has_a_thousand_steps_at_most() -> None:
    assert len(job("[" + "{}," * 1000 + "]").steps) == 1000
    assert faults(RESOURCES + "steps: [" + "{}," * 1001 + "]") == [
        "job.yaml:2:8: steps: must not have more than 1000 entries"
    ]


def test_logging_is_off_unless_asked_for() -> None:
    assert [job("[]", head).enable_logging for head in ("", "enableLogging:\n", "enableLogging: true\n")] == [
        False,
        False,
        True,
    ]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        bomb(9),
        "[" * 200_000,
        "- " * 120_000,
        "{a: " * 50_000,
        "a: &x " + "y" * 200_000 + "\nb: [" + "*x," * 9_000 + "]",
    ],
    ids=["laughs", "brackets", "dashes", "braces", "long alias"],
)
def test_expansion_and_nesting_attacks_are_refused_quickly(text: str) -> None:
    start = time.process_time()
    assert len(faults(text)) == 1
    assert time.process_time() - start < 10


def test_aliases_within_reason_are_expanded() -> None:
    loaded = job("[{run: {command: x, env: &e [{key: A, value: v}]}}, {run: {command: y, env: *e}}]")
    assert [step.run.env[0].value for step in loaded.steps if step.run] == ["v", "v"]


def test_files_that_cannot_be_read_are_one_line_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.yaml: there is no such file"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9")
    with pytest.raises(InputError, match=r"latin.yaml:2:4: is not UTF-8"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (256 * 1024 + 1))
    with pytest.raises(InputError, match="larger than 256 KiB"):
        load(tmp_path / "large.yaml")


def test_secrets_stay_out_of_reprs() -> None:
    loaded = parse(RESOURCES + "env: [{key: A, value: s3cret}]\nsteps: [{run: {command: s3cret}}]", "x")
    assert "s3cret" not in repr(loaded)
    assert "A" in repr(loaded.model)


def test_outdated_fields_and_idle_loops_cause_warnings() -> None:
    container = ContainerRun(image="a", mounts=(Mount(host_dir="/a", container_dir="/b"),))
    assert list(advice_on(Step(run=StepRun(command="x", container=container)))) == [
        (("run", "container", "mounts"), "is outdated; use the storage volumes, which are in every container")
    ]
    assert [what for _, what in advice_on(StepFor(parallel=False, steps=()))] == [
        "has neither items nor range, so it never runs"
    ]


WRONG = st.sampled_from([None, 5, -1, True, "x", "a b", [], [None], [5, "a"], {}, {"x": 1}, "10.0.0.1/24", 10**6])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_wrong_values_anywhere_only_lead_to_faults(data: st.DataObject) -> None:
    """The test puts wrong values of every kind into every field of every example, for the rules between parts."""
    document = yaml.safe_load(data.draw(st.sampled_from(EXAMPLES)).read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        here, found = document, []
        while isinstance(here, dict | list) and here:
            keys = sorted(here) if isinstance(here, dict) else range(len(here))
            key = data.draw(st.sampled_from(keys))
            found.append((here, key))
            here = here[key]
        holder, key = data.draw(st.sampled_from(found))
        holder[key] = copy.deepcopy(data.draw(WRONG))  # else one document would be changed in the next
    with contextlib.suppress(InputError):
        parse(json.dumps(document), "job.yaml")
