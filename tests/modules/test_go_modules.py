"""Modules in Go's template syntax are used like those in Jinja, and see as little of the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.modules.support import HEAD, RESOURCES, commands, faults, folder, load

MODULE = """\
name: several
minimumResources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
inputs:
  - key: WHO
  - key: CPUS
    default: "{{ .Job.Resources.CpusPerTask }}"
outputs: [{key: SAID}]
steps:
{{- /* One step per step of the caller. */ -}}
{{- range $i, $step := .Step.Use.Steps }}
  - name: {{ printed }}
    steps:
      - {{ $step | toYaml | nindent 8 }}
{{- else }}
  - run: {command: alone}
{{- end }}
{{- if and .Step.Name (gt .Job.Resources.MemPerCPU 99) }}
  - run: {command: {{ .Step.Name | quote }}}
{{- end }}
""".replace("{{ printed }}", "{{ default $i $step.Name | toYaml }}")


def test_a_module_in_gos_syntax_becomes_its_steps(cache: Path) -> None:
    folder(MODULE)
    steps = "steps: [{name: one, run: {command: \"echo 'a: b'\\nexit\"}}, {run: {command: 1.10}}]"
    loaded = load(f"- name: calls\n  use: {{source: ./m, exportEnvAs: M, {steps}}}\n- use: {{source: ./m}}\n", cache)
    assert commands(loaded.model) == ["echo 'a: b'\nexit", "1.10", "calls", "alone"]
    module = loaded.model.steps[0].module
    assert module is not None
    assert [(one.key, one.value) for one in module.inputs] == [("CPUS", "2")]
    assert [one.name for one in module.steps] == ["one", "1", None]
    assert loaded.warnings == (
        "job.yaml:4:8: steps[0].use: warning: the input WHO is not given, so it is unset",
        "job.yaml:5:8: steps[1].use: warning: the input WHO is not given, so it is unset",
    )


def test_arguments_of_such_a_module_are_checked_too(cache: Path) -> None:
    folder(MODULE)
    args = "args: [{key: HWO, value: x}, {key: CPUS, value: 1}, {key: CPUS, value: 1}]"
    assert faults(f"- use: {{source: ./m, {args}}}\n", cache) == [
        "job.yaml:3:35: steps[0].use.args[0].key: the module has no input HWO (did you mean WHO?)",
        "job.yaml:3:80: steps[0].use.args[2].key: CPUS is given twice",
    ]


def test_secrets_of_the_job_are_out_of_reach(cache: Path) -> None:
    head = "env: [{key: SECRET, value: s3cret}]\n" + RESOURCES
    for seen in (".Job.Env", ".Job.Steps", "$.Job.Input", ".Step.Catch", ".Step.Finally", ".Env", ".Job | toYaml"):
        folder(HEAD + f"steps: []\n# {{{{ {seen} }}}}\n")
        (found,) = faults("- {use: {source: ./m}, catch: [{run: {command: s3cret}}]}\n", cache, head)
        assert found.startswith("m/module.yaml:5:1: template: ")
        assert "s3cret" not in found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "steps:\n\n  - {{ include `x` . }}\n",
            "m/module.yaml:6:1: template: include is not supported; did you mean index?",
        ),
        ("steps:\n{{ with .Step }}", "m/module.yaml:5:1: template: {{with}} has no {{end}}"),
        (
            "steps:\n{{- if true }}\n\n  - rum: x\n{{- end }}\n",
            "m/module.yaml:7:5: steps[0].rum: unknown field (did you",
        ),
        ("steps: []\n{{ if true }}\n- [\n{{ end }}", "m/module.yaml:6:1: "),
        (
            "inputs: [{key: A}, {key: A}]\nsteps: [] # {{ .Step.Name }}\n",
            "m/module.yaml:4:26: inputs[1].key: is the key of",
        ),
        ("steps:\n{{ if .Step.Name -}}\n", "m/module.yaml:5:1: template: {{if}} has no {{end}}"),
        (
            "steps: # {{ range .Step.Use.Steps }}\n- x: 1\n{{ else }}\n- y: 1\n{{ end }}",
            "m/module.yaml:7:3: steps[0].y: unknown field",
        ),
    ],
)
def test_a_fault_is_named_at_its_line_in_the_module_file(text: str, fault: str, cache: Path) -> None:
    folder(HEAD + text)
    found = faults("- use: {source: ./m}\n", cache)
    assert found[0].startswith(fault)
    assert found[0].endswith("(used by job.yaml:3:8: steps[0].use)")


def test_such_a_module_may_use_modules_and_be_used_by_them(cache: Path) -> None:
    folder(HEAD + "steps: {{ .Step.Use.Steps | toYaml | nindent 2 }}\n", "go")
    folder(HEAD + "steps: {{ step.use.steps | toYaml }}\n", "jinja")
    inner = "steps: [{run: {command: deep}}]"
    loaded = load(f"- use: {{source: ./go, steps: [{{use: {{source: ./jinja, {inner}}}}}]}}\n", cache)
    assert commands(loaded.model) == ["deep"]
    loaded = load(f"- use: {{source: ./jinja, steps: [{{use: {{source: ./go, {inner}}}}}]}}\n", cache)
    assert commands(loaded.model) == ["deep"]


def test_such_a_module_is_bounded(cache: Path) -> None:
    loops = "{{ range $.Step.Use.Steps }}" * 8 + "{{ end }}" * 8
    folder(HEAD + f"steps: []\n# {loops}\n")
    handed = "steps: [" + "{}," * 50 + "]"
    (found,) = faults(f"- use: {{source: ./m, {handed}}}\n", cache)
    assert "m/module.yaml:5:1: template: takes more than 200000 steps" in found


def test_fields_of_other_tools_in_modules_can_be_warnings(cache: Path) -> None:
    """The original grid ignores unknown fields and arguments. A file that it accepted can be accepted unchanged."""
    for text in (
        HEAD + "steps: [{nam: x}]\nversion: 2\n",
        HEAD + "version: 2\nsteps: [{nam: x}]\n# {{ .Step.Name }}\n",
    ):
        folder(text)
        use = "- use: {source: ./m, args: [{key: A, value: x}], verbose: true}\n"
        assert len(faults(use, cache)) == 1
        loaded = load(use, cache, ignore_unknown_fields=True)
        assert any("steps[0].use.verbose: warning: unknown field, ignored" in one for one in loaded.warnings)
        assert any("steps[0].nam: warning: unknown field (did you mean 'name'?), ign" in one for one in loaded.warnings)
        assert any("warning: the module has no input A; it has none; it is ignored" in one for one in loaded.warnings)


def test_a_module_with_unknown_fields_beside_its_steps_is_used_with_a_warning(cache: Path) -> None:
    """A published module of the original's tutorial prints `.Job` in a comment and misspells a field."""
    outputs = "outputs: [{key: OUT, despcription: a text}]\nauthor: x\n"
    folder(HEAD + outputs + "# - {{ .Job }}\nsteps: [{run: {command: echo}}]\n")
    loaded = load("- use: {source: ./m}\n", cache)
    assert [warning.partition(": warning: ")[2] for warning in loaded.warnings] == [
        "unknown field (did you mean 'description'?), ignored (used by job.yaml:3:8: steps[0].use)",
        "unknown field; expected at the root: name, description, minimumResources, inputs, outputs, steps, ignored "
        "(used by job.yaml:3:8: steps[0].use)",
    ]
