"""Measured labels: their keys and format, the merge with a provider's own labels, and changes that count."""

from __future__ import annotations

import pytest

from deepgrid.benchmark.labels import has_moved, is_measured, labels_of, measured_of, merge, normalise, number
from deepgrid.lifecycle.job import Label

OLD = (Label("compute.gflops", "100.00"), Label("os", "linux"))


@pytest.mark.parametrize(
    "key",
    ["cpu", "cpu.microarch", "compute.gflops", "network.all-to-all.latency.us", "storage.disk-tmp.write.bw.mibps"],
)
def test_a_standard_key_is_measured(key: str) -> None:
    assert is_measured(key)


@pytest.mark.parametrize("key", ["name", "region", "computegflops", "storage.tape.read.iops"])
def test_any_other_key_is_the_providers_own(key: str) -> None:
    assert not is_measured(key)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("my_invalid-label123!", "my_invalid-label123"),
        ("validLabel123", "validlabel123"),
        (".a@b#c$d%e^f&g.f", ".a-b-c-d-e-f-g.f"),
        ("Intel(R) Xeon(R) CPU @ 2.80GHz", "intel-r-xeon-r-cpu-2.80ghz"),
        ("-", ""),
    ],
)
def test_text_is_normalised(text: str, plain: str) -> None:
    assert normalise(text) == plain


def test_figures_have_two_decimals() -> None:
    assert [number(value) for value in (7, 0.029, 1.0e4, 2.433e-1)] == ["7.00", "0.03", "10000.00", "0.24"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_not_finite_becomes_no_label(value: float) -> None:
    with pytest.raises(ValueError, match="not a finite figure"):
        number(value)


def test_labels_are_sorted_and_an_empty_value_is_none() -> None:
    assert labels_of({"os": "Linux", "gpu": "", "arch": "x86_64"}) == (Label("arch", "x86_64"), Label("os", "linux"))


def test_own_labels_win_over_measured_ones() -> None:
    own = (Label("name", "alpha"), Label("compute.gflops", "1.00"))
    assert merge(own, OLD) == (Label("compute.gflops", "1.00"), Label("name", "alpha"), Label("os", "linux"))
    assert measured_of(merge(own, OLD)) == (Label("compute.gflops", "1.00"), Label("os", "linux"))


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (OLD, False),
        ((Label("compute.gflops", "105.00"), Label("os", "linux")), False),
        ((Label("compute.gflops", "105.01"), Label("os", "linux")), True),
        ((Label("compute.gflops", "94.99"), Label("os", "linux")), True),
        ((Label("compute.gflops", "100.00"), Label("os", "plan9")), True),
        ((Label("os", "linux"),), True),
        ((*OLD, Label("gpu", "a100")), True),
    ],
)
def test_labels_moved_when_a_text_changed_or_a_figure_by_over_five_percent(
    new: tuple[Label, ...], expected: bool
) -> None:
    assert has_moved(OLD, new) is expected


def test_anything_differs_from_zero() -> None:
    assert has_moved((Label("compute.gflops", "0.00"),), (Label("compute.gflops", "0.01"),))
