"""A workflow with modules becomes one without, or every fault is named with its file, line and use."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid import modules
from deepgrid.errors import InputError
from deepgrid.modules import limits
from deepgrid.workflow import Job, LoadedWorkflow, canonical, from_canonical
from tests.modules.conftest import GREET, HEAD, RESOURCES, Origin


def load(steps: str, cache: Path, head: str = RESOURCES) -> LoadedWorkflow:
    Path("job.yaml").write_text(f"{head}steps:\n{steps}")
    return modules.load("job.yaml", cache)


def faults(steps: str, cache: Path, head: str = RESOURCES) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(steps, cache, head)
    return caught.value.message.splitlines()


def commands(job: Job) -> list[str]:
    from deepgrid.workflow.walk import steps_in

    return [step.run.command for _, step in steps_in(job.steps, ("steps",)) if step.run]


def folder(text: str, path: str = "m") -> None:
    Path(path).mkdir(parents=True, exist_ok=True)
    (Path(path) / "module.yaml").write_text(text)


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
        f"job.yaml:3:17: steps[0].use.source: warning: takes what is newest, now {commit}; pin it with @TAG or @COMMIT",
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
        "- run: {command: {{ [inputs.A, step.name, step.use.source, job.resources.cpusPerTask] | join(' ') | toYaml }}}\n"
        "- steps: {{ step.use.steps | toYaml }}\n"
        "<# no comment of YAML #>- run: {command: 'echo ${#A} {{ job.keys() | list | join }}'}\n"
    )
    head = "env: [{key: SECRET, value: s3cret}]\n" + RESOURCES
    steps = (
        '- name: calls\n  use: {source: ./m, args: [{key: A, value: "it\'s: 5"}], steps: [{run: {command: mine}}]}\n'
    )
    assert commands(load(steps, cache, head).model) == ["it's: 5 calls ./m 2", "mine", "echo ${#A} resources"]
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
        "job.yaml:4:5: steps[0].use: the module needs the input WHO (who is greeted)",
    ]


def test_a_job_too_small_and_outputs_without_a_name_are_told(cache: Path) -> None:
    text = HEAD.replace(
        "tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0", "tasks: 2, cpusPerTask: 4, memPerCpu: 101, gpus: 1"
    )
    folder(text + "outputs: [{key: VERSION, description: d}]\nsteps: []\n")
    assert faults("- use: {source: ./m, exportEnvAs: BASH}\n", cache) == [
        "job.yaml:3:8: steps[0].use: the module needs at least 2 tasks, the job has 1",
        "job.yaml:3:8: steps[0].use: the module needs at least 4 cpusPerTask, the job has 2",
        "job.yaml:3:8: steps[0].use: the module needs at least 101 memPerCpu, the job has 100",
        "job.yaml:3:8: steps[0].use: the module needs at least 1 gpus, the job has 0",
        "job.yaml:3:35: steps[0].use.exportEnvAs: makes of the output VERSION a name that is a variable of the shell itself;"
        " choose another name",
    ]


def test_faults_of_all_modules_name_file_line_and_use(cache: Path) -> None:
    folder(HEAD + "steps:\n{% if true %}\n- run: {command: x,\n    shel: y}\n{% endif %}\n- dependsOn: [nobody]\n", "a")
    folder(
        HEAD
        + "steps:\n{% for n in [1] %}\n- dependsOn: [nobody]\n- run: {command: x, resources: {cpusPerTask: 3}}\n{% endfor %}",
        "b",
    )
    folder(HEAD + "steps: [{use: {source: ../a}}]\n", "c")
    assert faults("- use: {source: ./a}\n- use: {source: ./b}\n- use: {source: ./c}\n", cache) == [
        "a/module.yaml:7:5: steps[0].run.shel: unknown field (did you mean 'shell'?) (used by job.yaml:3:8: steps[0].use)",
        "b/module.yaml:6:15: steps[0].dependsOn[0]: no step launches nobody (used by job.yaml:4:8: steps[1].use)",
        "b/module.yaml:7:32: steps[1].run.resources: asks for 3 CPUs in all, the job has 2 (used by job.yaml:4:8: steps[1].use)",
        "b/module.yaml:7:32: steps[1].run.resources: asks for 300 MB of memory in all, the job has 200 (used by job.yaml:4:8:"
        " steps[1].use)",
        "a/module.yaml:7:5: steps[0].run.shel: unknown field (did you mean 'shell'?)"
        " (used by c/module.yaml:4:15: steps[0].use (used by job.yaml:5:8: steps[2].use))",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEAD + "steps: [\n", "m/module.yaml:5:1: "),
        (HEAD + "steps: []\nname: twice\n", "m/module.yaml:5:1: duplicate field 'name'"),
        ("text\n", "m/module.yaml:1:1: the module: must be a mapping of fields"),
        (HEAD, "m/module.yaml:1:1: steps: is required"),
        (HEAD + "inputs: [{key: A, description: d, default: '{{ 1 }}'}]\nsteps: []\n", "m/module.yaml:4:1: inputs: is read before"),
        (HEAD + "{% if true %}\n  inputs:\n  - {key: A, description: d, default: x}\n{% endif %}\nsteps: []\n", "m/module.yaml:"),
        (HEAD + "inputs: [{key: A, description: d}, {key: A, description: d}]\nsteps: []\n", "another input already"),
        (HEAD + "inputs:\n- {kei: A, description: d}\nsteps: []\n", "m/module.yaml:5:4: inputs[0].kei: unknown field"),
        (HEAD + "steps: [{{ fail('choose x') }}]\n", "m/module.yaml:4:1: template: TemplateRuntimeError: choose x"),
        (HEAD + "\nsteps: [{{ inputs.NO }}]\n", "m/module.yaml:5:1: template: UndefinedError: 'dict object' has no attribute 'NO'"),
        (HEAD + "steps: []\n{% endif %}\n", "m/module.yaml:5:1: template: "),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_module_file_is_named_there(text: str, fault: str, cache: Path) -> None:
    folder(text)
    found = faults("- use: {source: ./m}\n", cache)
    assert any(fault in one for one in found)
    assert found[0].endswith("(used by job.yaml:3:8: steps[0].use)")


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(10**9) %}x{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{{ 'x' * 10**10 }}",
        "{{ 10**(10**10) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('touch canary').read() }}",
        "{% include '/etc/passwd' %}",
        "{{ inputs.update({'A': 'x'}) }}",
        "{{ (" * 20_000,
    ],
    ids=lambda text: str(text)[:30],
)
def test_templates_that_take_too_much_or_reach_out_are_refused(
    text: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TEMPLATE_CPU_S", 1)
    folder(HEAD + f"steps: []\n# {text}\n")
    (found,) = faults("- use: {source: ./m}\n", cache)
    assert "template" in found or "becomes larger" in found
    assert not (tmp_path / "canary").exists()


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (bomb(), "too large once its aliases are expanded"),
        (HEAD + "steps: " + "[" * 2000, "nested deeper than 64 levels"),
        ("#" * (10 * 1024 * 1024), "is larger than 256 KiB"),
        (HEAD + "steps: []\n# {% for a in range(9999) %}{{ 'xxxx' * 10 }}{% endfor %}", "becomes larger than 256 KiB"),
        (HEAD + "inputs: " + "[" * 2000, "nested deeper than 64 levels"),
    ],
    ids=["laughs", "deep", "10 MB", "grows", "deep inputs"],
)
def test_bombs_in_modules_are_refused(text: str, fault: str, cache: Path, origin: Origin) -> None:
    origin.commit(text)
    folder(text)
    for source in ("./m", origin.url):
        (found,) = faults(f"- use: {{source: '{source}'}}\n", cache)
        assert fault in found


def test_modules_are_bounded_in_depth_number_and_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(HEAD + "steps: [{use: {source: ../m}}]\n")
    (found,) = faults("- use: {source: ./m}\n", cache)
    assert found.startswith(
        "m/module.yaml:4:24: steps[0].use.source: is a module in more than 8 modules (used by m/mod"
    )
    folder(HEAD + "steps: []\n")
    monkeypatch.setattr(limits, "MOST_USES", 2)
    assert faults("- use: {source: ./m}\n" * 4, cache)[0].endswith(
        "steps[2].use.source: is one of more than 2 modules in all"
    )
    monkeypatch.setattr(limits, "WITHIN_S", -1.0)
    assert faults("- use: {source: ./m}\n", cache)[0].endswith("resolving all modules takes longer than -1 s")


def test_limits_of_the_whole_job_count_the_steps_of_modules(cache: Path) -> None:
    folder(HEAD + "steps:\n{% for n in range(600) %}\n- {name: x}\n{% endfor %}\n")
    (found,) = faults("- use: {source: ./m}\n- use: {source: ./m}\n", cache)
    assert "must not have more than 1000 steps in all" in found
    folder(HEAD + "steps: " + "[{steps: " * 14 + "[]" + "}]" * 14)
    (found,) = faults("- steps: [{steps: [{use: {source: ./m}}]}]\n", cache)
    assert "is nested deeper than 16 steps (used by job.yaml:3:" in found
    folder(HEAD + "steps: [{run: {command: '" + "x" * 100_000 + "'}}]\n")
    (found,) = faults("- use: {source: ./m}\n" * 3, cache)
    assert "larger than 256 KiB" in found


@pytest.mark.parametrize(
    ("setting", "path"), [("core.hooksPath", "hooks"), ("core.fsmonitor", "fsmonitor")], ids=["hooks", "fsmonitor"]
)
def test_git_runs_nothing_of_the_repository(
    setting: str, path: str, origin: Origin, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even what the person's own configuration would run for every repository."""
    hooks = tmp_path / path
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    value = hooks if path == "hooks" else hooks / "post-checkout"
    config.write_text(f"[{setting.split('.')[0]}]\n\t{setting.split('.')[1]} = {value}\n")
    origin.commit(HEAD + "steps: []\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(config.read_text())
    load(f"- use: {{source: '{origin.url}'}}\n", cache)
    assert not (tmp_path / "canary").exists()


def test_a_repository_too_large_is_refused(origin: Origin, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    from deepgrid.modules import repositories

    (origin.folder / "large").write_bytes(random.Random(1).randbytes(300_000))
    origin.commit(HEAD + "steps: []\n")
    monkeypatch.setattr(repositories, "_LIMITED", [*repositories._LIMITED[:-1], "64"])
    (found,) = faults(f"- use: {{source: '{origin.url}'}}\n", cache)
    assert "steps[0].use.source: git" in found


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
    assert faults(
        f"- use: {{source: '{origin.url}@v2'}}\n- use: {{source: '{origin.url}//no@v1'}}\n- use: {{source: '{origin.url}@abcdef1'}}\n", cache
    ) == [
        f"job.yaml:3:17: steps[0].use.source: {origin.url} has no tag v2, and that is no whole commit",
        f"job.yaml:4:17: steps[1].use.source: {origin.url} has no no/module.yaml at {commit[:12]}",
        f"job.yaml:5:17: steps[2].use.source: {origin.url} has no tag abcdef1, and that is no whole commit",
    ]  # fmt: skip


def test_a_server_that_says_nothing_is_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(limits, "FETCH_WITHIN_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}/a/b@v1"
        (found,) = faults(f"- use: {{source: '{address}'}}\n", cache)
    assert "git did not answer in time; try again later" in found
