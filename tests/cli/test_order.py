"""A customer's input becomes an order, or an error that names the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.client.job_values import seconds_of
from deepgrid.client.order import parse_affinity, parse_use, read_order
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Affinity, JobDefinition, Label

WORKFLOW = """\
resources: {tasks: 2, cpusPerTask: 3, memPerCpu: 500, gpus: 1}
steps:
  - name: hello
"""


@pytest.mark.parametrize(
    ("text", "op"),
    [("a<1", "<"), ("a<=1", "<="), ("a=1", "=="), ("a==1", "=="), ("a>=1", ">="), ("a>1", ">"), ("a!=1", "!="),
     ("a:in:1", "in"), ("a >= 1", ">="), (" a = 1 ", "==")],
)  # fmt: skip
def test_conditions(text: str, op: str) -> None:
    assert parse_affinity(text) == Affinity("a", op, "1")


@pytest.mark.parametrize(
    "text", ["", "a", "a=", "=1", " <1", "a< ", "a=b=c", "a:1", "a:in", "a=>1", "a!1", "a<>1", "a:in::in:1"]
)
def test_other_conditions_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a condition"):
        parse_affinity(text)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("mem>=4GB", "write mem>=4096"),
        ("mem<1.5 TiB", "write mem<1572864"),
        ("share>50%", "Write the number only"),
        ("rate<=10Gb/s", "Write the number only"),
    ],
)
def test_an_order_is_not_compared_with_a_unit_as_text(text: str, step: str) -> None:
    with pytest.raises(InputError, match="labels are numbers without a unit") as caught:
        parse_affinity(text)
    assert step in str(caught.value.next_step)


def test_texts_that_have_an_order_and_equal_texts_are_conditions() -> None:
    assert parse_affinity("since>=2026-01-01") == Affinity("since", ">=", "2026-01-01")
    assert parse_affinity("card==40GB") == Affinity("card", "==", "40GB")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("01:30:00", 5400), ("30:00", 1800), ("2-12", 216000),
        ("1-01:30", 91800), ("1-00:00:05", 86405), (" 90m ", 5400), ("2 days", 172800), ("90 min", 5400),
        ("1h 30m", 5400), ("1 hour, 30 minutes", 5400), ("2hrs", 7200), ("1w", 604800), ("1H30M", 5400),
    ],
)  # fmt: skip
def test_durations_are_written_with_units_or_as_slurm_writes_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["90", "1.5", "", "soon", "1:2:3:4", "-5", "-5s", "1h 30", "1-", "1:234"])
def test_durations_without_a_unit_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"has no unit of time|is not a duration"):
        seconds_of(text)


def test_labels_that_must_be_there() -> None:
    assert parse_use("os=linux") == Label("os", "linux")
    assert parse_use("url = http://x/?a=b") == Label("url", "http://x/?a=b")
    for text in ("mem>=4", "mem>=4GB", "a==b", "a!=b", "mem=>4"):
        with pytest.raises(InputError, match="is a condition on a label"):
            parse_use(text)
    for text in ("", "os", "os=", "=linux", " = "):
        with pytest.raises(InputError, match="not a label"):
            parse_use(text)


def test_an_order_is_named_after_its_file_and_holds_what_goes_on_chain(tmp_path: Path) -> None:
    file = tmp_path / "simulation.yaml"
    file.write_text(WORKFLOW)
    order = read_order(file, 5, uses=["os=linux"], affinities=["mem>=4000"])
    assert order.name == "simulation"
    assert order.definition("ab") == JobDefinition(
        gpus=1, mem_per_cpu_mb=500, cpus_per_task=3, ntasks=2, definition_hash="ab",
        uses=(Label("os", "linux"),), affinity=(Affinity("mem", ">=", "4000"),),
    )  # fmt: skip


def test_a_long_file_name_is_cut_to_32_bytes_at_a_character_and_a_long_given_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / f"{'x' * 31}é.yaml"
    file.write_text(WORKFLOW)
    assert read_order(file, 5).name == "x" * 31
    with pytest.raises(InputError, match="33 bytes"):
        read_order(file, 5, name="x" * 33)


def test_an_order_does_not_show_its_script(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(WORKFLOW + "    run: {command: echo secret}\n")
    assert "secret" not in repr(read_order(file, 5))
