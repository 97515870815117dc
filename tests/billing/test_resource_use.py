"""What a job used is said only where it is known, and a hint is given only for a run that is long enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.billing.resource_use import Measured, ResourceUse, resource_use

USE = ResourceUse(4, 8000, 100, cpu_s=90, memory_mb=1234, read_mb=3, written_mb=0)


def test_the_line_says_what_was_asked_and_used() -> None:
    assert USE.words == "asked 4 CPUs, used 0.9; asked 8.0 GB, used 1.2 GB; read 3 MB, wrote 0 MB"
    assert replace(USE, asked_cpus=1, cpu_s=100, memory_mb=None, read_mb=None, written_mb=None).words == (
        "asked 1 CPU, used 1.0"
    )


def test_nothing_is_said_of_what_is_not_known() -> None:
    nothing = resource_use(4, 8000, 100, Measured())
    assert (nothing.words, nothing.hint, nothing.used_cpus) == ("", "", None)
    assert replace(USE, run_s=9).used_cpus is None


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, "CPUs and memory"),
        ({"cpu_s": 101}, "memory"),
        ({"memory_mb": 2001}, "CPUs"),
        ({"asked_cpus": 1, "cpu_s": 5}, "memory"),  # one CPU is the least to ask for
        ({"cpu_s": 101, "memory_mb": 2001}, ""),
        ({"run_s": 59, "cpu_s": 1}, ""),
    ],
)
def test_a_hint_comes_when_a_quarter_or_less_was_used(changes: dict[str, int], names: str) -> None:
    hint = replace(USE, **changes).hint
    assert bool(hint) == bool(names)
    assert ("CPUs" in hint) == ("CPUs" in names)
    assert ("memory" in hint) == ("memory" in names)


def test_gpus_are_said_where_they_were_measured() -> None:
    use = resource_use(1, 100, 100, Measured(cpu_s=90, gpu_percent=140, gpu_memory_mb=38_888), gpus=2)
    assert use.words == "asked 1 CPU, used 0.9; asked 2 GPUs, used 1.4 at most and 38.9 GB of their memory"
    assert not use.hint
    less = replace(use, asked_gpus=8, memory_mb=1)
    assert less.hint == "a quarter or less was used: ask for less memory and fewer GPUs, and pay less"
    assert "fewer CPUs, less memory and fewer GPUs" in replace(less, asked_cpus=4).hint
    assert replace(use, gpu_memory_mb=None).words.endswith("asked 2 GPUs, used 1.4 at most")


@pytest.mark.parametrize(
    "measured",
    [
        Measured(),
        Measured(cpu_s=1, gpu_percent=140, gpu_memory_mb=38_888),
        Measured(cpu_s=12),
        Measured(cpu_s=0, memory_mb=85, read_mb=0, written_mb=7),
        Measured(memory_mb=1),
    ],
)
def test_figures_travel_in_the_text_of_the_resources(measured: Measured) -> None:
    assert Measured.of_tres(f"cpu=4,mem=400M,node=1,{measured.tres}") == measured
    assert Measured.of_tres(measured.tres) == measured


@pytest.mark.parametrize(
    "text", ["", "cpu=4,mem=400M", "used/cpu=-1", "used/cpu=1e9,used/mem=", f"used/mem={'9' * 99}M", "xused/cpu=1"]
)
def test_other_text_of_a_provider_is_no_figure(text: str) -> None:
    assert Measured.of_tres(text) == Measured()
