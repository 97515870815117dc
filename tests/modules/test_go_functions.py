"""The functions and actions of Go and sprig, with the results that their documentation gives."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.modules.gotemplate import Part, TemplateLimits, fill_in_go
from deepgrid.modules.gotemplate.functions import FUNCTIONS
from deepgrid.modules.gotemplate.lookup import Unfit
from deepgrid.modules.template import TemplateFault
from tests.modules.go_support import ROOT, fault, filled

CASES: dict[str, list[tuple[str, str]]] = yaml.safe_load(Path(__file__).with_name("go_functions.yaml").read_text())
JOB = Part(".Job", {**ROOT.fields["Job"].fields, "EnableLogging": True})
WITH_LOGS = Part("", {**ROOT.fields, "Job": JOB})


@pytest.mark.parametrize(("expression", "result"), [case for cases in CASES.values() for case in cases])
def test_functions(expression: str, result: str) -> None:
    assert filled(f"{{{{ {expression} }}}}", WITH_LOGS) == result


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ with .Step.Name }}<{{ . }}>{{ end }}", "<calls it>"),
        ("{{ with .Step.If }}a{{ else }}b{{ end }}", "b"),
        ("{{ with .Step.If }}a{{ else with .Step.Name }}{{ . }}{{ end }}", "calls it"),
        ("{{ with $x := .Job.Resources }}{{ $x.Tasks }}{{ .Tasks }}{{ end }}", "44"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ range $i, $n := until 5 }}{{ if eq $n 3 }}{{ break }}{{ end }}{{ $i }}{{ end }}", "012"),
        ("{{ range until 4 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}", "023"),
        ("{{ range until 2 }}{{ range until 2 }}{{ break }}{{ end }}x{{ end }}", "xx"),
        ("{{ range $k, $v := dict `b` 2 `a` 1 }}{{ $k }}={{ $v }};{{ end }}", "a=1;b=2;"),
        ("{{ range dict `b` 2 `a` 1 }}{{ . }}{{ else }}none{{ end }}", "12"),
        ("{{ range dict }}x{{ else }}none{{ end }}", "none"),
        ('{{ define "x" }}<{{ . }}{{ $ }}>{{ end }}{{ template "x" 5 }}', "<55>"),
        ('{{ template "x" }}{{ define "x" }}a{{ end }}', "a"),
        ('{{ block "x" .Step.Name }}{{ . }}!{{ end }}', "calls it!"),
        (
            '{{ define "f" }}{{ if gt . 0 }}{{ . }}{{ template "f" (sub . 1) }}{{ end }}{{ end }}{{ template "f" 3 }}',
            "321",
        ),
        ('{{ $d := dict }}{{ $_ := set $d "a" 1 }}{{ $d.a }}', "1"),
        ("{{ $n := 0 }}{{ range until 4 }}{{ $n = add $n . }}{{ end }}{{ $n }}", "6"),
        ("# - {{ .Job }}\nx", "# - (.Job)\nx"),
        ("{{ if and (ge .Job.Resources.Tasks 2) (le .Job.Resources.Tasks 8) }}fits{{ end }}", "fits"),
        ("{{ range $i, $e := .Step.DependsOn }}{{ add1 $i }}/{{ len $.Step.DependsOn }} {{ end }}", "1/2 2/2 "),
    ],
)
def test_actions(template: str, result: str) -> None:
    assert filled(template) == result


def test_what_is_not_pure_does_not_exist() -> None:
    assert not {
        "env",
        "expandenv",
        "now",
        "date",
        "randAlpha",
        "randInt",
        "uuidv4",
        "genPrivateKey",
        "getHostByName",
    } & {*FUNCTIONS}
    assert "env is not supported" in fault('{{ env "HOME" }}')[1]


ANYTHING = (
    "1", "-1", "0", "2.5", "1e300", '""', '"a"', '"%d%s%"', '"5"', "nil", "true", "(list)", "(list 1 `a`)",
    "(dict `a` 1)", ".Step", ".Step.Use.Steps", ".Step.If", "(until 3)", '"é\\n"', "9223372036854775807", "'a'",
)  # fmt: skip


@settings(deadline=None, max_examples=1000)
@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.sampled_from(ANYTHING), max_size=4))
def test_any_call_gives_a_value_or_a_fault(name: str, arguments: list[str]) -> None:
    try:
        outcome = fill_in_go(f"{{{{ {name} {' '.join(arguments)} }}}}", ROOT, TemplateLimits()).text
    except TemplateFault as error:
        outcome = error.what
    assert len(outcome) <= TemplateLimits().characters


@pytest.mark.parametrize("character", [" ", "1", "a", "-", ".", ",", "=", "|", "1 - ", "- ", " ,", "1."])
def test_no_constraint_takes_long_to_read(character: str) -> None:
    """Strangers write them, and the services read them."""
    constraint = (character * 256)[:256]
    for text in (constraint, "1" + constraint[:254] + "!", f">= 1{constraint[:250]}"):
        began = time.perf_counter()
        with suppress(Unfit):
            FUNCTIONS["semverCompare"](text, "1.2.3")
        with suppress(Unfit):
            FUNCTIONS["semver"](text)
        assert time.perf_counter() - began < 0.5


def test_the_docs_list_every_function() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/modules.md").read_text()
    listed = page.partition("| about | functions |")[2].partition("\n\n")[0]
    assert {*re.findall("`(.*?)`", listed)} == {*FUNCTIONS}
