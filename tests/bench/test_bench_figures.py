"""The figures of benchmarks are compared as ratios, and their page keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.scale.bench_figures import PAGE, Better, Figure, last_json, page_of, read_page, worse

WAIT = Figure("market", "wait_s", 10.0, 100.0, 1.0, 2, "2026-11-28")


def ratio(name: str, before: float, now: float, machine: float = 1.0) -> float | None:
    known = replace(WAIT, name=name, value=before)
    return replace(known, value=now, reference_ms=100.0 * machine).ratio_to(known)


@pytest.mark.parametrize(
    ("name", "before", "now", "expected"),
    [
        ("wait_s", 10, 12, 1.2),
        ("jobs_per_s", 120, 100, 1.2),
        ("per_s", 120, 100, 1.2),
        ("jobs_per_cpu_s", 60, 50, 1.2),
        ("rss_mb", 100, 120, 1.2),
        ("jain", 0.9, 0.75, 1.2),
        ("operator_cpu_ms_per_job", 5, 6, 1.2),
        ("gas_per_job", 100_000, 120_000, 1.2),
    ],
)
def test_each_kind_of_figure_has_its_direction(name: str, before: float, now: float, expected: float) -> None:
    assert ratio(name, before, now) == pytest.approx(expected)


def test_a_slow_machine_makes_no_figure_of_time_worse_and_no_size_better() -> None:
    assert ratio("wait_s", 10, 20, machine=2.0) == pytest.approx(1.0)
    assert ratio("jobs_per_s", 100, 50, machine=2.0) == pytest.approx(1.0)
    assert ratio("rss_mb", 100, 130, machine=2.0) == pytest.approx(1.3)


def test_what_is_a_setting_of_a_benchmark_is_not_compared() -> None:
    assert replace(WAIT, name="jobs").better is None
    assert replace(WAIT, name="node_kb_per_job").better is Better.SMALLER
    assert ratio("providers", 500, 1000) is None


def test_only_what_is_worse_by_more_than_15_percent_is_named() -> None:
    before = {("market", name): replace(WAIT, name=name) for name in ("wait_s", "round_s", "end_s")}
    now = [replace(WAIT, name=name, value=value) for name, value in [("wait_s", 11.4), ("round_s", 12), ("end_s", 30)]]
    assert [one.name for one, _ in worse([*now, replace(WAIT, name="new_s")], before)] == ["end_s", "round_s"]


def test_the_page_keeps_every_figure() -> None:
    some = [WAIT, replace(WAIT, name="gas_per_job", value=162392.0), replace(WAIT, bench="gas", value=0.165)]
    figures = {(one.bench, one.name): one for one in some}
    assert read_page(page_of(figures)) == figures


def test_the_committed_page_is_as_it_is_written() -> None:
    text = PAGE.read_text()
    assert page_of(read_page(text)) == text


def test_the_last_line_of_json_counts() -> None:
    assert last_json('{"old": 1}\ntable\n{"bench": "x", "per_s": 1.5, "same": true}\nend\n') == {"per_s": 1.5}
    with pytest.raises(ValueError, match="no line of JSON"):
        last_json("table\n")
