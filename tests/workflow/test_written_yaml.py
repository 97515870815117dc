"""YAML files are accepted as people write them: with unquoted text, octal modes, merged mappings, and fields of other
tools.
"""

from __future__ import annotations

import json
import time

import pytest
from pydantic import ValidationError

from deepgrid.errors import InputError
from deepgrid.workflow import LoadedWorkflow, canonical, from_canonical, parse
from deepgrid.workflow.faults import faults_of
from deepgrid.workflow.models import Definition

HEAD = "resources: {tasks: 2, cpusPerTask: 2, memPerCpu: 100, gpus: 0}\n"


def read(text: str, *, ignore_unknown_fields: bool = False) -> LoadedWorkflow:
    return parse(HEAD + text, "job.yaml", ignore_unknown_fields=ignore_unknown_fields)


def faults(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "job.yaml")
    return caught.value.message.splitlines()


WRITTEN = [
    "8080",
    "true",
    "1.10",
    "010",
    "1e3",
    "False",
    "0x1F",
    "-0",
    "+5",
    ".5",
    "9" * 50,
    "1_000",
    "yes",
    "2024-01-01",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_text_without_quotes_is_the_text_that_stands_in_the_file(text: str) -> None:
    job = read(f"env: [{{key: A, value: {text}}}]\nsteps: []\n").model
    assert job.env[0].value == text


def test_every_text_field_may_be_without_quotes() -> None:
    text = """\
input: {s3: {region: 1, bucketUrl: 's3://b', path: /, accessKeyId: 123, secretAccessKey: 0123, endpointUrl: 'http://h'}}
steps:
  - name: 1
    if: true
    for: {parallel: true, items: [1, 2.50, no, true], steps: [{run: {command: true}}]}
  - launch: {handleName: 7, steps: []}
  - dependsOn: [7]
    use: {source: 5, args: [{key: A, value: 1.0}]}
"""
    job = read(text).model
    first, _, third = job.steps
    assert job.input is not None
    assert job.input.s3 is not None
    assert (job.input.s3.region, job.input.s3.access_key_id, job.input.s3.secret_access_key) == ("1", "123", "0123")
    assert first.for_ is not None
    assert (first.name, first.if_, first.for_.items) == ("1", "true", ("1", "2.50", "no", "true"))
    assert first.for_.steps[0].run is not None
    assert first.for_.steps[0].run.command == "true"
    assert third.use is not None
    assert (third.depends_on, third.use.source, third.use.args[0].value) == (("7",), "5", "1.0")


def test_an_anchor_keeps_the_text_of_its_value() -> None:
    job = read("env: [{key: A, value: &v 1.10}, {key: B, value: *v}]\nsteps: []\n").model
    assert [one.value for one in job.env] == ["1.10", "1.10"]


def test_numbers_and_truth_values_are_not_converted_from_text() -> None:
    assert faults(HEAD + "enableLogging: 'true'\nsteps: []\n") == [
        "job.yaml:2:16: enableLogging: must be true or false"
    ]
    (found,) = faults(HEAD.replace("tasks: 2", "tasks: '2'") + "steps: []\n")
    assert found.endswith("resources.tasks: must be a whole number; write it without quotes")
    (found,) = faults(HEAD.replace("tasks: 2", "tasks: 010") + "steps: []\n")
    assert found.endswith("resources.tasks: must be a whole number without a leading zero")


def test_stored_definitions_stay_strict() -> None:
    """Services exchange canonical JSON, in which a number is never a text."""
    content = canonical(read("env: [{key: A, value: 5}]\nsteps: []\n").model)
    assert b'"value":"5"' in content
    with pytest.raises(InputError, match="must be text"):
        from_canonical(content.replace(b'"5"', b"5"))
    apart = b'"steps":[{"run":{"command":"x","dns":["1.1.1.1"]}}]'
    with pytest.raises(InputError, match="needs network"):
        from_canonical(canonical(read("steps: []\n").model).replace(b'"steps":[]', apart))
    with pytest.raises(InputError, match="unknown field"):
        from_canonical(content.replace(b'"steps"', b'"x-a":1,"steps"'))


@pytest.mark.parametrize(
    ("written", "mode"),
    [("0400", 0o400), ("0o755", 0o755), ("0777", 511), ("511", 511), ("493", 0o755), ("0", 0), ("00", 0), ("010", 8)],
)
def test_a_mode_with_a_leading_zero_is_octal(written: str, mode: int) -> None:
    assert read(f"inputMode: {written}\ninput: {{http: {{url: 'http://h'}}}}\nsteps: []\n").model.input_mode == mode


@pytest.mark.parametrize("written", ["0800", "01000", "755", "'0400'", "4OO", "-0400"])
def test_other_modes_are_refused(written: str) -> None:
    (found,) = faults(HEAD + f"inputMode: {written}\nsteps: []\n")
    assert found.startswith("job.yaml:2:12: inputMode: must be ")


MERGED = """\
x-base: &base
  shell: /bin/bash
  workDir: /a
  env: [{key: A, value: base}]
x-other: &other {workDir: /b, mpi: none}
steps:
  - run: {<<: *base, command: one}
  - run:
      command: two
      <<: [*base, *other]
      shell: /bin/sh
  - run: {<<: {<<: *other, mapUid: 0}, command: three}
"""


def test_merge_keys_and_holders_of_anchors_work() -> None:
    one, two, three = (step.run for step in read(MERGED).model.steps)
    assert one is not None
    assert two is not None
    assert three is not None
    assert (one.shell, one.work_dir, one.command, one.env[0].value) == ("/bin/bash", "/a", "one", "base")
    assert (two.shell, two.work_dir, two.mpi, two.command) == ("/bin/sh", "/a", "none", "two")
    assert (three.work_dir, three.mpi, three.map_uid) == ("/b", "none", 0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x-a: &a {comand: x}\nsteps: [{run: {<<: *a}}]", "job.yaml:2:10: steps[0].run.comand: unknown field (did you"),
        ("steps: [{<<: 5}]", "job.yaml:2:14: << merges mappings"),
        ("steps: [{<<: [a]}]", "job.yaml:2:15: << merges mappings"),
        ("x-a: &a {name: x}\nsteps: [{<<: *a, <<: *a}]", "job.yaml:3:18: duplicate field '<<'"),
        ("steps: [{'<<': {name: x}}]", "job.yaml:2:10: steps[0].<<: unknown field"),
        ("steps: [{x-a: 1}]", "job.yaml:2:10: steps[0].x-a: unknown field"),
        ("x-a: &a {<<: *a}\nsteps: []", "an alias cannot repeat the value that it is part of"),
        ("steps:", "job.yaml:2:7: steps: must be a list"),
        ("steps: [TODO]", "job.yaml:2:9: steps[0]: must be a mapping of fields"),
        ("steps: []\n---\nsteps: []", "job.yaml:3:1: a second document begins here"),
    ],
)
def test_what_cannot_be_merged_or_is_no_holder_is_refused(text: str, fault: str) -> None:
    assert fault in faults(HEAD + text)[0]


def merges(levels: int, width: int = 10, base: str = "{name: x}") -> str:
    lines = [f"x-0: &m0 {base}"]
    lines += [f"x-{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * width)}]}}" for n in range(1, levels)]
    return "\n".join([*lines, f"steps: [{{<<: *m{levels - 1}}}]"])


@pytest.mark.parametrize(
    "text",
    [
        merges(12),
        merges(12, base="{}"),
        merges(40, 2, "{}"),
        merges(3, 500, "{" + ", ".join(f"k{n}: x" for n in range(500)) + "}"),
    ],
    ids=["laughs", "empty laughs", "thin and high", "many keys"],
)
def test_merged_mappings_cannot_explode(text: str) -> None:
    started = time.process_time()
    (found,) = faults(HEAD + text)
    assert "too large once its aliases are expanded" in found
    assert time.process_time() - started < 10


def test_unknown_fields_are_warnings_if_asked_for() -> None:
    text = """\
version: 3
steps:
  - nam: one
    run: {command: x, image: busybox, resources: {tasks: 1, memory: 5}}
"""
    assert len(faults(HEAD + text)) == 4
    loaded = read(text, ignore_unknown_fields=True)
    assert [line.removeprefix("job.yaml:") for line in loaded.warnings] == [
        "2:1: version: warning: unknown field; expected at the root: resources, enableLogging, env, input, inputMode,"
        " output, privateFiles, continuousOutputSync, steps, virtualNetworks, ignored",
        "4:5: steps[0].nam: warning: unknown field (did you mean 'name'?), ignored",
        "5:23: steps[0].run.image: warning: unknown field; it belongs in `container`, ignored",
        "5:61: steps[0].run.resources.memory: warning: unknown field, ignored",
    ]
    assert loaded.model.steps[0].run is not None
    assert from_canonical(canonical(loaded.model)) == loaded.model
    with pytest.raises(InputError, match="steps: must be a list"):
        read("steps:\nversion: 3\n", ignore_unknown_fields=True)


@pytest.mark.parametrize("network", ["", "network: host, "])
def test_the_host_network_with_interfaces_is_a_warning(network: str) -> None:
    apart = "dns: [1.1.1.1, nonsense], customNetworkInterfaces: [{vnet: {name: none, address: x}}]"
    loaded = read(f"steps: [{{run: {{command: x, {network}{apart}}}}}]\n")
    run = loaded.model.steps[0].run
    assert run is not None
    assert (run.dns, run.custom_network_interfaces) == ((), ())
    what = "warning: is ignored: the step has the host network; set network: slirp4netns or pasta"
    assert [line.split(": ", 1)[1] for line in loaded.warnings] == [
        f"steps[0].run.dns: {what}",
        f"steps[0].run.customNetworkInterfaces: {what}",
    ]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://h/a b", "must not contain U+0020 SPACE; write %20 instead"),
        ("https://h/é?x", "must not contain U+00E9 LATIN SMALL LETTER E WITH ACUTE; write %C3%A9 instead"),
        (
            "https://bücher.example/",
            "must have a host name without U+00FC LATIN SMALL LETTER U WITH DIAERESIS; write it",
        ),
        ("https:///x", "must be an address with a host"),
        ("ftp://h/x", "must be an address that starts with http:// or https://"),
        ("https//h/x", "must be an address that starts with http:// or https://"),
    ],
)
def test_a_refused_address_is_described_truly(url: str, sentence: str) -> None:
    (found,) = faults(HEAD + f"input: {{http: {{url: '{url}'}}}}\nsteps: []\n")
    assert found.startswith(f"job.yaml:2:21: input.http.url: {sentence}")


@pytest.mark.parametrize(
    ("figures", "fault"),
    [
        ("tasks: 2000000000, cpusPerTask: 1, memPerCpu: 1", "resources.tasks: must be at most"),
        ("tasks: 1, cpusPerTask: 2000000000, memPerCpu: 1", "resources.cpusPerTask: must be at most"),
        ("tasks: 1, cpusPerTask: 1, memPerCpu: 2000000000", "resources.memPerCpu: must be at most"),
        (
            "tasks: 1000000, cpusPerTask: 1000, memPerCpu: 1",
            "resources: asks for 1000000000 CPUs in all, more than any",
        ),
        (
            "tasks: 1000000, cpusPerTask: 1, memPerCpu: 10000000",
            "resources: asks for 10000000000000 MB of memory in all",
        ),
    ],
)
def test_figures_larger_than_any_cluster_are_refused(figures: str, fault: str) -> None:
    (found,) = faults(f"resources: {{{figures}, gpus: 0}}\nsteps: []\n")
    assert fault in found


@pytest.mark.parametrize(
    ("written", "mb"), [("4G", 4096), ("'4 GB'", 4096), ("1.5GiB", 1536), ("100M", 100), ("1t", 1048576), ("64", 64)]
)
def test_memory_may_have_a_unit(written: str, mb: int) -> None:
    text = f"resources: {{tasks: 1, cpusPerTask: 1, memPerCpu: {written}, gpus: 0}}\nsteps: []\n"
    assert parse(text, "job.yaml").model.resources.mem_per_cpu == mb


def test_a_definition_of_other_clients_is_told_what_its_memory_is_in_mb() -> None:
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": "4G", "gpus": 0}
    with pytest.raises(ValidationError) as caught:
        Definition.model_validate({"resources": resources, "steps": []})
    assert [what for _, what, _ in faults_of(caught.value, Definition)] == [
        "must be a whole number without a unit; 4G of memory is 4096 MB"
    ]


def test_characters_that_json_writes_as_two_escapes_are_one() -> None:
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}
    steps = [{"name": "🚀", "run": {"command": "echo 🚀👩\u200d🚀"}}]
    step = parse(json.dumps({"x-🚀": 1, "resources": resources, "steps": steps}), "job.json").model.steps[0]
    assert step.run is not None
    assert (step.name, step.run.command) == ("🚀", "echo 🚀👩\u200d🚀")


@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude80", "\\ude80\\ud83d", "\\ud83d \\ude80"])
def test_half_a_character_is_refused(lone: str) -> None:
    (fault,) = faults(HEAD + f'steps: [{{name: "{lone}"}}]\n')
    assert fault.endswith("steps[0].name: must not contain NUL or lone surrogates")
