"""The page of the model is made from the committed figures, and the model counts right."""

from __future__ import annotations

import pytest

from tools.scale.bench_figures import Figure
from tools.scale.scale_model import first_to_break, parts, peak_per_s, regions
from tools.scale.scale_page import SCALE_PAGE, scale_page

MEASURED = {
    ("capacity", "operator_cpu_ms_per_job"): 5.0,
    ("capacity", "gas_per_job"): 150_000.0,
    ("supervisor", "jobs_per_s"): 4.0,
}
FIGURES = {(bench, name): Figure(bench, name, value, 100, 1, 2, "") for (bench, name), value in MEASURED.items()}


def test_the_committed_page_is_as_it_is_made() -> None:
    assert SCALE_PAGE.read_text() == scale_page(), "run python -m tools.scale"


def test_a_part_is_planned_below_its_limit() -> None:
    operator, supervisor, gas = parts(FIGURES)
    assert (operator.limit_per_s, supervisor.limit_per_s, gas.limit_per_s) == (200, 4, 200)
    assert [operator.count(rate, 1) for rate in (1, 139, 141, 1400)] == [1, 1, 2, 10]
    assert [supervisor.count(28, providers) for providers in (1, 10, 100)] == [10, 10, 100]


def test_with_few_clusters_the_supervisors_break_first_and_with_many_the_chain() -> None:
    assert peak_per_s(864_000) == pytest.approx(30)
    few, many = (first_to_break(parts(FIGURES), 8_640_000, count) for count in (10, 1000))
    assert few[0].name == "one supervisor process"
    assert few[1] == pytest.approx(7.5)
    assert many[0].name in ("operator", "gas of the chain")
    assert regions(parts(FIGURES), 8_640_000) == 3


def test_a_part_without_figures_is_left_out() -> None:
    assert parts({}) == []
