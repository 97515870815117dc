"""The parts of Go's template syntax that modules use work, with Go's whitespace. The expected texts are the output of
Go's text/template for the same templates.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.modules.gotemplate import TemplateLimits, fill_in_go, is_go_template
from deepgrid.modules.gotemplate.functions.yaml import quote, to_yaml
from deepgrid.modules.template import TemplateFault
from tests.modules.go_support import ROOT, STEPS, fault, filled


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("a {{ 1 }} b", "a 1 b"),
        ("a {{- 1 }} b", "a1 b"),
        ("a {{ 1 -}} b", "a 1b"),
        ("a {{- 1 -}} b", "a1b"),
        ("a\n\t {{- 1 -}} \r\n\n b", "a1b"),
        ("a\n{{ 1 -}}\n{{- 2 }}\nb", "a\n12\nb"),
        ("{{23 -}} < {{- 45}}", "23<45"),
        ("a {{-1 }} b", "a -1 b"),
        ("a {{- -1 -}} b", "a-1b"),
        ("a\u00a0{{- 1 -}}\u00a0b", "a\u00a01\u00a0b"),
        ("a\x0b{{- 1 }}", "a\x0b1"),
        ("x{{/* a comment */}}y", "xy"),
        ("x {{- /* a\ncomment */ -}} y", "xy"),
        ("x {{/* }} {{ */}} y", "x  y"),
        ("{{ \"}}\" }}", "}}"),
        ("{{ `a\nb` }}", "a\nb"),
        ("{{\n1\n}}", "1"),
        ("}} { {", "}} { {"),
        ('{{ "{{" }}.Names}}', "{{.Names}}"),
        (r'{{ "\t\"\\\x41\u00e9\U0001F600\101" }}', '\t"\\Aé😀A'),
        ("", ""),
    ],
)  # fmt: skip
def test_text_white_space_and_comments(template: str, result: str) -> None:
    assert filled(template) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (".Job.Resources.Tasks", "4"), (".Job.Resources.MemPerCPU", "100"), (".Job.Resources.CpusPerTask", "2"),
        ("$.Job.Resources.CPUsPerTask", "2"), (".Job.Resources.Gpus", "0"), (".Job.Resources.GPUs", "0"),
        (".Step.Name", "calls it"), (".Step.If", "<nil>"), (".Step.DependsOn", "[a b]"), (".Step.Use.Source",
         "a/b/c@v1"),
        ("(.Step).Name", "calls it"), ("(.Step.Use).Source", "a/b/c@v1"), (".Step.Use.ExportEnvAs", "<nil>"),
        ("true", "true"), ("not true", "false"), ("-5", "-5"), ("nil | default 3", "3"),
        ("eq 1 1", "true"), ("eq 1 2 3 1", "true"), ("eq 1 2 3", "false"), ('eq "a" "a"', "true"), ('ne "a" "b"',
         "true"),
        ("lt 1 2", "true"), ("gt 1 2", "false"), ('lt "a" "b"', "true"), ("gt .Job.Resources.Tasks 3", "true"),
        ('eq .Step.Name "calls it"', "true"), ("eq .Step.If nil", "true"), ("ne .Step.Name nil", "true"),
        ("and 1 0 2", "0"), ("and 1 2", "2"), ('or 0 "" 3', "3"), ('or 0 ""', ""), ("and true (not false)", "true"),
        ("and .Step.If .Step.If.Nothing", "<nil>"), ("1 | and 0", "0"), ("1 | and 2", "1"),
        ("or 1 .Job.Resources.Nothing", "1"),
        ('default "x" ""', "x"), ('default "x" "y"', "y"), ('.Step.If | default "none"', "none"), ("default 5 0", "5"),
        ('.Step.Run.Shell | default "/bin/sh"', "/bin/sh"), ("default 1 false", "1"), ("default 2", "2"),
        ('quote "a"', '"a"'), ("quote 1", '"1"'), ('quote "a\\nb" nil "c"', '"a\\nb" "c"'), ("quote `\"é\\`",
         '"\\"é\\\\"'),
        ('"a\\nb" | indent 2', "  a\n  b"), ('"a\\nb" | nindent 2', "\n  a\n  b"), ('nindent 0 "a"', "\na"),
        ('"a" | indent 1 | indent 1 | quote', '"  a"'), ("1 | eq 1", "true"), ('"x" | printed', None),
        (".Step.Use.Steps | toYaml | indent 0 | quote | eq nil", "false"),
        ("toYaml .Job.Resources", "tasks: 4\ncpusPerTask: 2\nmemPerCpu: 100\ngpus: 0"),
        ("toYaml .Step.DependsOn", "- a\n- b"), ("toYaml .Step.If", "null"), ('toYaml "yes"', '"yes"'),
        ("toYaml true", "true"),
    ],
)  # fmt: skip
def test_expressions(expression: str, result: str | None) -> None:
    if result is None:
        assert "printed is not supported; did you mean print?" in fault(f"{{{{ {expression} }}}}")[1]
    else:
        assert filled(f"{{{{ {expression} }}}}") == result


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ if true }}a{{ end }}b", "ab"),
        ("{{ if false }}a{{ end }}b", "b"),
        ("{{ if .Step.If }}a{{ else }}b{{ end }}", "b"),
        ("{{ if .Step.Run }}a{{ else if eq .Job.Resources.Tasks 4 }}b{{ else }}c{{ end }}", "b"),
        ("{{ if 0 }}a{{ else if nil }}b{{ else if `` }}c{{ else }}d{{ end }}", "d"),
        ("{{ if .Job }}a{{ end }}{{ if .Step.Steps }}b{{ end }}", "a"),
        ("{{ if $x := .Step.Name }}{{ $x }}{{ end }}", "calls it"),
        ("{{ range .Step.DependsOn }}<{{ . }}>{{ end }}", "<a><b>"),
        ("{{ range $e := .Step.DependsOn }}<{{ $e }}{{ . }}>{{ end }}", "<aa><bb>"),
        ("{{ range $i, $e := .Step.DependsOn }}{{ $i }}={{ $e }};{{ end }}", "0=a;1=b;"),
        ("{{ range .Step.Steps }}x{{ else }}none{{ end }}{{ range nil }}x{{ end }}", "none"),
        ("{{ range .Step.Use.Steps }}{{ .Name }} {{ .Run.MapUID }} {{ $.Step.Name }};{{ end }}",
         "one 0 calls it;yes <nil> calls it;"),
        ("{{ $x := 1 }}{{ $x = 2 }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "21"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $l := `` }}{{ range .Step.DependsOn }}{{ $l = . }}{{ end }}{{ $l }}", "b"),
        ("{{ $x := 1 }}{{ $x := eq $x 1 }}{{ $x }}", "true"),
        ("{{ range $i, $e := .Step.DependsOn }}{{ if $i }}, {{ end }}{{ $e }}{{ end }}", "a, b"),
        ("{{ range .Step.DependsOn }}{{ range $.Step.DependsOn }}{{ . }}{{ end }};{{ end }}", "ab;ab;"),
        ("a:\n{{- range .Step.DependsOn }}\n- {{ . }}\n{{- end }}\nb", "a:\n- a\n- b\nb"),
        ("a:\n{{ range .Step.DependsOn -}}\n- {{ . }}\n{{ end -}}\nb", "a:\n- a\n- b\nb"),
        ("{{if true}}a{{else}}b{{end}}", "a"),
    ],
)  # fmt: skip
def test_conditions_loops_and_variables(template: str, result: str) -> None:
    assert filled(template) == result


def test_each_line_of_the_result_knows_its_line_of_the_template() -> None:
    template = "a\n{{- /* one\ntwo */}}\nb {{ `x\ny` }} c\n{{ if true -}}\n\n  d\n{{ end }}e"
    result = fill_in_go(template, ROOT, TemplateLimits())
    assert list(zip(result.text.split("\n"), result.lines, strict=True)) == [
        ("a", 1), ("b x", 4), ("y c", 4), ("d", 8), ("e", 9),
    ]  # fmt: skip


def test_steps_fit_into_lists_at_any_indentation() -> None:
    template = """\
steps:
  - name: before
  {{- toYaml .Step.Use.Steps | nindent 2 }}
  - steps: {{ .Step.Use.Steps | toYaml | nindent 6 }}
{{- range $step := .Step.Use.Steps }}
  - {{ $step | toYaml | nindent 4 }}
{{- end }}
"""
    handed = [one.model_dump(mode="json", by_alias=True, exclude_defaults=True) for one in STEPS]
    assert yaml.safe_load(filled(template))["steps"] == [{"name": "before"}, *handed, {"steps": handed}, *handed]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aZ_-: #1", max_size=5), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(deadline=None)
@given(values)
def test_any_value_survives_as_yaml_of_several_lines(value: Any) -> None:
    text = to_yaml(value)
    assert yaml.safe_load(text) == value
    indented = "x:\n  y:" + ("\n    " + text.replace("\n", "\n    "))
    assert yaml.safe_load(indented) == {"x": {"y": value}}


@given(texts)
def test_any_text_survives_in_quotes_on_one_line(text: str) -> None:
    assert "\n" not in quote(text)
    assert yaml.safe_load(quote(text)) == text


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(
    ["{{", "}}", "{{-", "-}}", " ", "\n", "if", "else", "end", "range", "$x", ":=", "=", ",", "|", "(", ")", ".",
    ".Step",
     ".Name", "toYaml", "eq", "and", "1", '"a"', "`", "'", "/*", "*/", "é", "nindent 2", "$i, $e := .Step.DependsOn"]
), max_size=25))  # fmt: skip
def test_any_text_is_filled_in_or_refused_with_its_line(parts: list[str]) -> None:
    text = "".join(parts)
    lines = text.count("\n") + 1
    try:
        result = fill_in_go(text, ROOT, TemplateLimits())
    except TemplateFault as error:
        refused_at = error.line
    else:
        refused_at = 1
        assert len(result.lines) == result.text.count("\n") + 1
    assert 1 <= refused_at <= lines


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Job.Resources.Tasks }}", "{{- .Step.Name -}}", "{{$x := 1}}", "{{/* c */}}", "{{- /* c */ -}}",
        "{{ if .Step.If }}",
        "{{ range $i, $e := .Step.Use.Steps }}", "{{ toYaml .Step }}", '{{ default "x" .Step.Name }}',
        "{{ (.Step).Name }}",
        "{{ `x` }}", "{{ end }}", "{{ with .X }}", '{{ include "x" . }}', '{{ "a" | quote }}{{ .Step.Name }}',
        "{{ $.Step.Name }}",
        "{{if eq 1 1}}", "{{ . }}",
        "{{ range .Step.Use.Steps }}", "{{- range (.Step.Use.Steps) }}", "{{ if (eq 1 1) }}",
        "{{ else }}{{ inputs.A }}",
    ],
)  # fmt: skip
def test_actions_of_go_are_recognised(text: str) -> None:
    assert is_go_template(f"name: x\nsteps: {text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "", "steps: []", "{{ inputs.A }}", "{{ step.use.steps | toYaml }}", "{{- step.name -}}",
        "{% if x %}{{ .X }}{% endif %}",
        "{%- raw -%}{{ .Names }}", "{{ fail('x') }}", "{{ 'a' | upper }}", "{{ range(5) | list }}", "{{ 10**5 }}",
        "{{ x if y else z }}",
        "{{ ''.__class__ }}", "{{ (inputs.A) }}", "{{ number }} of {{ total }}", "{{ a in b }}",
        "{% set end = 1 %}{{ end }}", "{{ not x }}",
        "curl -w '%{http_code}'", "{{ inputs.A }}{% raw %}{{ .Names }}{% endraw %}", "{{ loop.index }}",
        "{{ inputs | toYaml }}", "{{ end | upper }}", "{{ 'x' }}",
        "{{ \"x\" }}",
    ],
)  # fmt: skip
def test_templates_of_jinja_and_plain_files_stay_what_they_are(text: str) -> None:
    assert not is_go_template(f"name: x\nsteps: {text}\n")
