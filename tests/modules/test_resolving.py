"""A workflow with modules becomes one without, or every fault is named with its file, line and use."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.errors import InputError
from deepgrid.workflow import canonical, from_canonical
from tests.modules.support import GREET, HEAD, RESOURCES, Origin, commands, faults, folder, load


def test_a_module_at_a_tag_becomes_its_steps_and_its_commit(origin: Origin, cache: Path) -> None:
    commit = origin.commit(GREET, "tools/greet/module.yaml", tag="v1")
    origin.commit("later", "tools/greet/module.yaml")
    args = "args: [{key: WHO, value: Ada}, {key: TIMES, value: '2'}]"
    loaded = load(f"- use: {{source: '{origin.url}//tools/greet@v1', {args}, exportEnvAs: G}}\n", cache)
    step = loaded.model.steps[0]
    assert step.use is None
    assert step.module is not None
    assert (step.module.source, step.module.commit) == (f"{origin.url}//tools/greet@v1", commit)
    assert [(one.key, one.value) for one in step.module.inputs] == [("WHO", "Ada"), ("TIMES", "2")]
    assert (step.module.outputs, step.module.export_env_as) == (("SAID",), "G")
    assert [one.name for one in step.module.steps] == ["greet 0", "greet 1"]
    assert from_canonical(canonical(loaded.model)) == loaded.model
    assert loaded.warnings == ()


def test_a_tag_of_the_path_wins_and_a_commit_needs_no_tag(origin: Origin, cache: Path) -> None:
    first = origin.commit(HEAD + "steps: [{run: {command: one}}]\n", "a/module.yaml", tag="a/v1")
    second = origin.commit(HEAD + "steps: [{run: {command: two}}]\n", "a/module.yaml", tag="v1")
    uses = "".join(f"- use: {{source: '{origin.url}//a@{ref}'}}\n" for ref in ("v1", second, first))
    assert commands(load(uses, cache).model) == ["one", "two", "one"]


def test_the_newest_is_taken_with_a_warning(origin: Origin, cache: Path) -> None:
    commit = origin.commit(HEAD + "steps: []\n")
    loaded = load(f"- use: {{source: '{origin.url}'}}\n", cache)
    assert loaded.warnings == (
        f"job.yaml:3:17: steps[0].use.source: warning: uses the newest commit, now {commit};"
        " pin it with @TAG or @COMMIT",
    )


def test_a_commit_is_fetched_once(origin: Origin, cache: Path) -> None:
    commit = origin.commit(HEAD + "steps: [{run: {command: kept}}]\n")
    use = f"- use: {{source: '{origin.url}@{commit}'}}\n"
    load(use, cache)
    origin.folder.rename(origin.folder.with_name("gone"))
    assert commands(load(use, cache).model) == ["kept"]
    assert (cache.stat().st_mode & 0o777) == 0o700
    (found,) = faults(f"- use: {{source: '{origin.url}@v1'}}\n", cache)
    assert found.startswith("job.yaml:3:17: steps[0].use.source: git: ")


def test_modules_use_modules_beside_them(origin: Origin, cache: Path) -> None:
    origin.commit(HEAD + "steps: [{run: {command: inner}}]\n", "inner/module.yaml")
    commit = origin.commit(HEAD + "steps: [{use: {source: ../inner}}]\n", "outer/module.yaml", tag="v1")
    loaded = load(f"- use: {{source: '{origin.url}//outer@v1'}}\n", cache)
    outer = loaded.model.steps[0].module
    assert outer is not None
    assert outer.steps[0].module is not None
    assert outer.steps[0].module.commit == commit
    assert commands(loaded.model) == ["inner"]


def test_the_template_sees_inputs_step_and_resources_and_nothing_else(cache: Path) -> None:
    folder(
        HEAD + "inputs: [{key: A, description: d}]\nsteps:\n"
        "{% set seen = [inputs.A, step.name, step.use.source, job.resources.cpusPerTask] %}\n"
        "- run: {command: {{ seen | join(' ') | toYaml }}}\n"
        "- steps: {{ step.use.steps | toYaml }}\n"
        "<# no comment of YAML #>- run: {command: 'echo ${#A} {{ job.keys() | list | join }}'}\n"
    )
    head = "env: [{key: SECRET, value: s3cret}]\n" + RESOURCES
    use = '{source: ./m, args: [{key: A, value: "it\'s: 5"}], steps: [{run: {command: mine}}]}'
    assert commands(load(f"- {{name: calls, use: {use}}}\n", cache, head).model) == [
        "it's: 5 calls ./m 2",
        "mine",
        "echo ${#A} resources",
    ]
    for text in ("{{ job.env }}", "{{ env }}", "{{ step.catch }}", "{{ self._TemplateReference__context }}"):
        folder(HEAD + f"steps: []\n# {text}\n")
        (found,) = faults("- use: {source: ./m}\n", cache)
        assert found.startswith("m/module.yaml:5:1: template: ")


def test_handed_steps_may_use_modules_from_where_they_are_written(cache: Path) -> None:
    folder(HEAD + "steps: {{ step.use.steps | toYaml }}\n", "far/m")
    folder(HEAD + "steps: [{run: {command: near}}]\n", "near")
    assert commands(load("- use: {source: ./far/m, steps: [{use: {source: ./near}}]}\n", cache).model) == ["near"]


def test_arguments_are_checked(cache: Path) -> None:
    folder(GREET)
    args = "[{key: TIME, value: x}, {key: OTHER, value: x}, {key: TIMES, value: '1'}, {key: TIMES, value: '1'}]"
    assert faults(f"- use:\n    source: ./m\n    args: {args}\n", cache) == [
        "job.yaml:5:18: steps[0].use.args[0].key: the module has no input TIME (did you mean TIMES?)",
        "job.yaml:5:41: steps[0].use.args[1].key: the module has no input OTHER; it has WHO, TIMES",
        "job.yaml:5:91: steps[0].use.args[3].key: TIMES is given twice",
    ]


def test_a_job_too_small_and_outputs_without_a_name_are_told(cache: Path) -> None:
    text = HEAD[: HEAD.index("min")] + "minimumResources: {tasks: 2, cpusPerTask: 4, memPerCpu: 101, gpus: 1}\n"
    folder(text + "outputs: [{key: VERSION, description: d}]\nsteps: []\n")
    assert faults("- use: {source: ./m, exportEnvAs: BASH}\n", cache) == [
        "job.yaml:3:8: steps[0].use: the module needs at least 2 tasks, the job has 1",
        "job.yaml:3:8: steps[0].use: the module needs at least 4 cpusPerTask, the job has 2",
        "job.yaml:3:8: steps[0].use: the module needs at least 101 memPerCpu, the job has 100",
        "job.yaml:3:8: steps[0].use: the module needs at least 1 gpus, the job has 0",
        "job.yaml:3:35: steps[0].use.exportEnvAs: turns the output VERSION into a name that is a variable of the shell"
        " itself; choose another name",
    ]


def test_faults_of_all_modules_name_file_line_and_use(cache: Path) -> None:
    folder(HEAD + "steps:\n{% if true %}\n- run: {command: x,\n    shel: y}\n{% endif %}\n- dependsOn: [nobody]\n", "a")
    too_large = "- run: {command: x, resources: {cpusPerTask: 3}}"
    folder(HEAD + f"steps:\n{{% for n in [1] %}}\n- dependsOn: [nobody]\n{too_large}\n{{% endfor %}}", "b")
    folder(HEAD + "steps: [{use: {source: ../a}}]\n", "c")
    first, second = ("used by job.yaml:3:8: steps[0].use", "used by job.yaml:4:8: steps[1].use")
    third = "used by c/module.yaml:4:15: steps[0].use (used by job.yaml:5:8: steps[2].use)"
    unknown = "a/module.yaml:7:5: steps[0].run.shel: unknown field (did you mean 'shell'?)"
    assert faults("- use: {source: ./a}\n- use: {source: ./b}\n- use: {source: ./c}\n", cache) == [
        f"{unknown} ({first})",
        f"a/module.yaml:9:15: steps[1].dependsOn[0]: no step launches nobody ({first})",
        f"b/module.yaml:6:15: steps[0].dependsOn[0]: no step launches nobody ({second})",
        f"b/module.yaml:7:32: steps[1].run.resources: asks for 3 CPUs in all, the job has 2 ({second})",
        f"b/module.yaml:7:32: steps[1].run.resources: asks for 300 MB of memory in all, the job has 200 ({second})",
        f"{unknown} ({third})",
        f"a/module.yaml:9:15: steps[1].dependsOn[0]: no step launches nobody ({third})",
    ]


WRONG = [
    ("steps: [\n", "m/module.yaml:5:1: "),
    ("steps: []\nname: twice\n", "m/module.yaml:5:1: duplicate field 'name'"),
    ("", "m/module.yaml:1:1: steps: is required"),
    (
        "inputs: [{key: A, description: d, default: '{{ 1 }}'}]\nsteps: []\n",
        "m/module.yaml:4:1: inputs: is read",
    ),
    ("{% if true %}\n  inputs: [{key: A, description: d, default: x}]\n{% endif %}\nsteps: []\n", "m/module.yaml:5:"),
    ("inputs: [{key: A, description: d}, {key: A, description: d}]\nsteps: []\n", "of another input already"),
    ("inputs:\n- {kei: A, description: d}\nsteps: []\n", "m/module.yaml:5:3: inputs[0].key: is required"),
    ("steps: [{{ fail('choose x') }}]\n", "m/module.yaml:4:1: template: choose x"),
    (
        "\nsteps: [{{ inputs.NO }}]\n",
        "m/module.yaml:5:1: template: 'dict object' has no attribute 'NO'",
    ),
    ("steps: []\n{% endif %}\n", "m/module.yaml:5:1: template: "),
]


@pytest.mark.parametrize(("text", "fault"), WRONG)
def test_what_is_wrong_in_a_module_file_is_named_there(text: str, fault: str, cache: Path) -> None:
    folder(HEAD + text)
    found = faults("- use: {source: ./m}\n", cache)
    assert any(fault in one for one in found)
    assert found[0].endswith("(used by job.yaml:3:8: steps[0].use)")


def test_what_cannot_be_had_says_whether_to_try_again(cache: Path) -> None:
    with pytest.raises(InputError) as caught:
        load("- use: {source: 'https://127.0.0.1:1/a/b@v1'}\n", cache)
    assert caught.value.transient
    assert "unable to access" in caught.value.message
    with pytest.raises(InputError) as caught:
        load("- use: {source: ./missing}\n- use: {source: 'https://127.0.0.1:1/a/b@v1'}\n", cache)
    assert not caught.value.transient
    assert "missing/module.yaml cannot be read (No such file or directory)" in caught.value.message


def test_tags_that_are_not_there_and_files_that_are_not_are_named(origin: Origin, cache: Path) -> None:
    commit = origin.commit(HEAD + "steps: []\n", tag="v1")
    steps = "".join(f"- use: {{source: '{origin.url}{rest}'}}\n" for rest in ("@v2", "//no@v1", "@abcdef1"))
    assert faults(steps, cache) == [
        f"job.yaml:3:17: steps[0].use.source: {origin.url} has no tag v2, and that is no commit id",
        f"job.yaml:4:17: steps[1].use.source: {origin.url} has no no/module.yaml at {commit[:12]}",
        f"job.yaml:5:17: steps[2].use.source: {origin.url} has no tag abcdef1, and not exactly one commit that begins"
        " so",
    ]  # fmt: skip


def test_an_input_without_a_value_is_unset_and_a_warning(cache: Path) -> None:
    inputs = "inputs: [{key: A}, {key: B, description: what for}, {key: C, default: ''}, {key: D, default: 1.10}]\n"
    folder(HEAD + inputs + "steps: [{run: {command: \"{{ inputs.A | default('none') }} {{ inputs.D }}\"}}]\n")
    loaded = load("- use: {source: ./m}\n", cache)
    module = loaded.model.steps[0].module
    assert module is not None
    assert [(one.key, one.value) for one in module.inputs] == [("C", ""), ("D", "1.10")]
    assert commands(loaded.model) == ["none 1.10"]
    assert loaded.warnings == (
        "job.yaml:3:8: steps[0].use: warning: the input A is not given, so it is unset",
        "job.yaml:3:8: steps[0].use: warning: the input B (what for) is not given, so it is unset",
    )


def test_descriptions_are_optional(cache: Path) -> None:
    head = HEAD.replace("description: Greets somebody.\n", "")
    folder(head + "inputs: [{key: A, default: x}]\noutputs: [{key: B}]\nsteps: [{run: {command: x}}]\n")
    assert load("- use: {source: ./m, exportEnvAs: M}\n", cache).warnings == ()


@pytest.mark.parametrize("digits", [7, 12, 39, 40])
def test_the_first_digits_of_a_commit_are_resolved_and_the_whole_is_stored(
    digits: int, origin: Origin, cache: Path
) -> None:
    commit = origin.commit(HEAD + "steps: [{run: {command: first}}]\n")
    origin.commit(HEAD + "steps: [{run: {command: second}}]\n")
    loaded = load(f"- use: {{source: '{origin.url}@{commit[:digits]}'}}\n", cache)
    module = loaded.model.steps[0].module
    assert module is not None
    assert (module.commit, commands(loaded.model), loaded.warnings) == (commit, ["first"], ())


def test_a_branch_is_no_commit_and_a_tag_comes_first(origin: Origin, cache: Path) -> None:
    commit = origin.commit(HEAD + "steps: []\n")
    origin.git("branch", "abcdef12")
    (found,) = faults(f"- use: {{source: '{origin.url}@abcdef12'}}\n", cache)
    assert found.endswith("has no tag abcdef12, and not exactly one commit that begins so")
    tagged = origin.commit(HEAD + "steps: [{run: {command: tagged}}]\n", tag=commit[:8])
    module = load(f"- use: {{source: '{origin.url}@{commit[:8]}'}}\n", cache).model.steps[0].module
    assert module is not None
    assert module.commit == tagged


JOINS = """
- run:
    command: x
    network: pasta
    mapUid: 0
    resources: {gpusPerTask: 1}
    customNetworkInterfaces: [{vnet: {name: inner, address: 10.0.0.2/24}}]
"""


def test_what_only_a_module_uses_is_used(cache: Path) -> None:
    head = RESOURCES.replace("gpus: 0", "gpus: 1") + "virtualNetworks: [{name: inner, gatewayAddress: 10.0.0.1/24}]\n"
    folder(HEAD + f"steps:{JOINS}")
    folder(HEAD + "steps: [{run: {command: x}}]\n", "idle")
    assert load("- use: {source: ./m}\n", cache, head).warnings == ()
    assert [warning.partition(", ")[0] for warning in load("- use: {source: ./idle}\n", cache, head).warnings] == [
        "job.yaml:1:55: resources.gpus: warning: is paid for",
        "job.yaml:2:19: virtualNetworks[0]: warning: has no effect: no step joins it",
    ]


def test_steps_with_characters_beyond_the_first_plane_reach_a_module(cache: Path) -> None:
    folder(HEAD + "steps: {{ step.use.steps | toYaml }}\n")
    job = load("- use: {source: ./m, steps: [{name: 🚀 go}]}\n", cache).model
    assert job.steps[0].module is not None and job.steps[0].module.steps[0].name == "🚀 go"
