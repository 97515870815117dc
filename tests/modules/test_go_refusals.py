"""Unsupported parts of Go's template syntax are refused by name and line, and strangers' templates have limits."""

from __future__ import annotations

import time

import pytest

from deepgrid.modules.gotemplate import Part
from deepgrid.modules.template import TemplateFault
from tests.modules.go_support import fault, filled


@pytest.mark.parametrize(
    ("template", "line", "what"),
    [
        ("\n{{ with .Step }}", 2, "{{with}} has no {{end}}"),
        ("{{ define .Step }}{{ end }}", 1, "{{define}} needs a name in quotes"),
        ('{{ template "x" . }}', 1, "'x' is not defined"),
        ('{{ template "x" . | }}', 1, "a value is missing"),
        ('{{ define "x" . }}{{ end }}', 1, "'.' is not expected here"),
        ("{{ break }}", 1, "{{break}} stands alone, and inside of range"),
        ("{{ range .Step.DependsOn }}\n\n{{ break 1 }}{{ end }}", 3, "{{break}} stands alone"),
        ('{{ range .Step.DependsOn }}{{ define "x" }}{{ continue }}{{ end }}{{ end }}', 1, "{{continue}} stands alone"),
        ("{{ if true }}{{ else with .X }}{{ end }}", 1, "{{else with}} is not supported"),
        ('{{ $x := 1 }}{{ define "x" }}{{ $x }}{{ end }}', 1, "the variable $x is not defined"),
        ('\n\n{{ env "HOME" }}', 3, "env is not supported"),
        ("{{ now }}", 1, "now is not supported"),
        ("{{ randAlpha 5 }}", 1, "randAlpha is not supported"),
        ("{{ .Step.Name\n | uper }}", 2, "uper is not supported; did you mean upper?"),
        ("{{ 'ab' }}", 1, "a character in single quotes must be one"),
        ("{{ 0x }}", 1, None),
        ("{{ 09 }}", 1, "is no number of Go"),
        ("{{ 9223372036854775808 }}", 1, "of at most 64 bits"),
        ("{{ index .Step.DependsOn 2 }}", 1, "index: the index 2 is out of range: there are 2"),
        ('{{ index .Step.DependsOn "a" }}', 1, "a text is given where a whole number is wanted"),
        ("{{ div 1 0 }}", 1, "div: division by zero"),
        ("{{ mul 9223372036854775807 2 }}", 1, "the result has more than 64 bits"),
        ("{{ upper 1 }}", 1, "upper: a number is given where a text is wanted"),
        ("{{ first 1 }}", 1, "first: a number is given where a list is wanted"),
        ('{{ get (list 1) "a" }}', 1, "get: a list is given where a map is wanted"),
        ('{{ fail "needs a GPU" }}', 1, "fail: needs a GPU"),
        ('{{ b64dec "?" }}', 1, "b64dec: the text is not of that encoding"),
        ('{{ fromJson "{" }}', 1, "fromJson: the text is no JSON"),
        ('{{ semver "1.2.3.4" }}', 1, "semver: '1.2.3.4' is no version such as 1.2.3"),
        ('{{ semver "9223372036854775808" }}', 1, "semver: the result has more than 64 bits"),
        ('{{ semverCompare ">= bar" "1" }}', 1, "semverCompare: '>=bar' is no constraint such as >=1.2.3"),
        ('{{ semverCompare "12.3.34~ 1.2.3" "1" }}', 1, "is no constraint such as >=1.2.3"),
        ('{{ semverCompare "" "1" }}', 1, "is no constraint such as >=1.2.3"),
        ('{{ semverCompare ">1 || <>2" "2" }}', 1, "'<>2' is no constraint"),
        ("{{ semver (repeat 257 `1`) }}", 1, "semver: has more than 256 characters"),
        ('{{ (semver "1.2.3").IncMajor }}', 1, "a module does not see the version.IncMajor, only the version.Major"),
        ("{{ typeOf .Step }}", 1, "typeOf: a part of the job has no type that a module can name"),
        ("{{ toJson .Job }}", 1, "a module cannot see this part as a whole"),
        ('{{ $d := dict "a" 1 }}{{ $_ := set $d "b" $d }}', 1, "nested deeper than 32 levels"),
        ("{{ eq 1 1.0 }}", 1, "convert one with int or float64"),
        ('{{ printf "%5000d" 1 }}', 1, "widths must be numbers of at most 1000"),
        ("{{ .Job.Env }}", 1, "a module does not see .Job.Env, only .Job.Resources"),
        ("{{ .Job.Steps }}", 1, "a module does not see .Job.Steps"),
        ("{{ .Step.Catch }}", 1, "a module does not see .Step.Catch, only .Step.Name, .Step.DependsOn"),
        ("{{ .Other }}", 1, "a module does not see .Other, only .Job, .Step"),
        ("{{ .Job.Resources.Disk }}", 1, "there is no field .Disk"),
        ("{{ .Job.Resources.model_fields }}", 1, "there is no field .model_fields"),
        ("{{ .Step.Name.__class__ }}", 1, "a text has no field .__class__"),
        ("{{ . | toYaml }}", 1, "a module cannot see this part as a whole"),
        ("{{ .Job | toYaml }}", 1, "a module cannot see this part as a whole"),
        ("{{ .Step.Run.Shell }}", 1, "the field .Shell belongs to a part that is not set"),
        ("a\n{{ if true }}\nb", 2, "{{if}} has no {{end}}"),
        ("{{ range .Step.DependsOn }}", 1, "{{range}} has no {{end}}"),
        ("{{ end }}", 1, "{{end}} without if, range or with"),
        ("{{ else }}", 1, "{{else}} without if, range or with"),
        ("{{ if true }}{{ else }}{{ else }}{{ end }}", 1, "a second {{else}} of one {{if}}"),
        ("{{ if }}{{ end }}", 1, "a value is missing"),
        ("{{}}", 1, "a value is missing"),
        ("{{ 1 | }}", 1, "a value is missing"),
        ("{{ $x }}", 1, "the variable $x is not defined"),
        ("{{ if $x := 1 }}{{ end }}{{ $x }}", 1, "the variable $x is not defined"),
        ("{{ $x := $x }}", 1, "the variable $x is not defined"),
        ("{{ $x = 1 }}", 1, "the variable $x cannot be set here"),
        ("{{ $a, $b := 1 }}", 1, "two variables are set by range only"),
        ("{{ 1", 1, "the action {{ is not closed by }}"),
        ('x\n{{ "a }}', 2, "a quoted text must be closed on its line"),
        ("{{ `a }}", 1, "a text in backquotes is not closed"),
        ("{{/* a }}", 1, "the comment is not closed by */"),
        ("{{/* a */ }}", 1, "a comment must end with */}} or */ -}}"),
        ("{{ (1 }}", 1, "a parenthesis is not closed"),
        ("{{ 1) }}", 1, "')' is not expected here"),
        ('{{ "a""b" }}', 1, "is not expected here"),
        ("{{ .Step.Name 1 }}", 1, "only functions take arguments"),
        ("{{ 1 | .Step.Name }}", 1, "only functions take arguments"),
        ("{{ a! }}", 1, "does not fit"),
        ("{{ ! }}", 1, "'!' does not belong into an action"),
        (r'{{ "\q" }}', 1, r"\q is no escape sequence of Go"),
        (r'{{ "\ud800" }}', 1, "an escape sequence is no character"),
        ("{{ eq 1 }}", 1, "eq takes at least 2 arguments, not 1"),
        ("{{ not 1 2 }}", 1, "not takes 1 arguments, not 2"),
        ('{{ eq 1 "1" }}', 1, "a number cannot be compared with a text"),
        ("{{ eq true 1 }}", 1, "a truth value cannot be compared with a number"),
        ("{{ eq .Step.DependsOn 1 }}", 1, "a list cannot be compared"),
        ("{{ lt true false }}", 1, "cannot be compared with a truth value by order"),
        ("{{ lt 1 nil }}", 1, "cannot be compared"),
        ("{{ indent 2 1 }}", 1, "a number cannot be indented; use toYaml first"),
        ('{{ indent -1 "a" }}', 1, "the width to indent by must be a number from 0 to 200"),
        ('{{ indent "2" "a" }}', 1, "the width to indent by"),
        ("{{ range true }}{{ end }}", 1, "a truth value cannot be iterated over"),
        ("{{ range .Job.Resources }}{{ end }}", 1, "a part of the job cannot be iterated over"),
        ("{{ end x }}", 1, "{{end}} without"),
        ("{{ if 1 }}{{ end x }}", 1, "{{end x}} is not supported"),
    ],
)  # fmt: skip
def test_all_else_is_refused_by_name_and_line(template: str, line: int, what: str | None) -> None:
    found = fault(template)
    assert found[0] == line
    assert found[1].startswith("template: ")
    assert what is None or what in found[1]


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("{{ if true }}" * 33 + "{{ end }}" * 33, "nested deeper than 32 levels"),
        ("{{ " + "(" * 33 + "1" + ")" * 33 + " }}", "nested deeper than 32 levels"),
        ("{{ " + "(" * 100_000 + " }}", "nested deeper than 32 levels"),
        ("{{ if 1 }}" + "{{ else if 1 }}" * 5000 + "{{ end }}", "nested deeper than 32 levels"),
        ("{{ $x := 1 }}" * 501, "has more than 500 variables"),
        ("{{ 1 | eq 1 | eq true }}" * 9000, "takes more than 20000 steps"),
        ("{{ $x := `" + "x" * 1000 + "` }}" + "{{ $x }}" * 263, "becomes larger than 256 KiB"),
        ("{{ $x := `" + "\n" * 1000 + "` }}" + "{{ $y := indent 200 $x }}" * 31, "too much text"),
        ("{{ $x := `a` }}" + "{{ $x = quote $x }}" * 40, "too much text"),
        ("{{ $x := list 1 }}" + "{{ $x = concat $x $x }}" * 40, "too much text"),
        ("{{ $x := list 1 }}" + "{{ $x = list $x $x }}" * 40, "too much text"),
        ("{{ $x := list 1 }}" + "{{ $x = list $x }}" * 40, "nested deeper than 32 levels"),
        ("{{ $x := until 20000 }}{{ range $x }}{{ $_ := has -1 $x }}{{ end }}", "too much text"),
        ("{{ $x := repeat 100000 `a` }}{{ print" + " $x" * 1000 + " }}", "too much text"),
        ("{{ until 1000000000 }}", "makes more than 100000 numbers"),
        ("{{ range 1000000000 }}{{ end }}", "takes more than 20000 steps"),
        ("{{ repeat 1000000 `abc` }}", "too much text"),
        ("{{ join (repeat 100000 `a`) (until 90000) }}", "too much text"),
        ("{{ $x := `a` }}" + "{{ $x = replace `a` `aa` $x }}" * 40, "too much text"),
        ("{{ define `x` }}{{ template `x` }}{{ end }}{{ template `x` }}", "deeper than 64 levels"),
        ("{{ define `x` }}{{ range 3 }}{{ template `x` }}{{ end }}{{ end }}{{ template `x` }}", "deeper than 64"),
        ("".join(f"{{{{ define `{n}` }}}}{{{{ end }}}}" for n in range(101)), "more than 100 templates"),
    ],
)  # fmt: skip
def test_templates_are_bounded(template: str, what: str) -> None:
    started = time.process_time()
    assert what in fault(template, steps=20_000)[1]
    assert time.process_time() - started < 10


def test_nested_loops_are_bounded() -> None:
    many = Part("", {"Many": (("x",) * 500)})
    text = "{{ range .Many }}" + "{{ range $.Many }}" * 5 + "{{ end }}" * 6
    started = time.process_time()
    with pytest.raises(TemplateFault, match="takes more than 200000 steps"):
        filled(text, many)
    assert time.process_time() - started < 60, "bounded: the time of a processor that others share"
