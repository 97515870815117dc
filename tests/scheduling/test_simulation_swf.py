"""Traces in the Standard Workload Format: odd lines, shapes, and the trace of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.simulation import swf
from tools.simulation.workloads import mixed_workload

STORED = Path(__file__).parents[2] / "examples" / "traces" / "mixed.swf.gz"
GOOD = "1 100 5 60 4 -1 -1 4 120 2048 1 7 1 -1 1 1 -1 -1"


def fields(**changed: object) -> str:
    """Return a good line with other values; `f4=8` replaces the fourth field."""
    words = GOOD.split()
    for name, value in changed.items():
        words[int(name[1:]) - 1] = str(value)
    return " ".join(words)


def test_a_line_becomes_a_job_and_submissions_begin_at_zero() -> None:
    trace = swf.parse(["; Version: 2", "", GOOD, fields(f1=2, f2=130)])
    first, second = trace.jobs
    assert (first.customer, first.submitted_s, first.run_s, first.requested_s) == ("customer-07", 0, 60, 120)
    assert (first.ntasks, first.cpus_per_task, first.mem_per_cpu_mb, first.gpus) == (1, 4, 2, 0)
    assert second.submitted_s == 30


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (fields(f8=-1, f5=16), (2, 8, 0)),  # the allocated processors where the requested ones are unknown
        (fields(f8=9), (9, 1, 0)),
        (fields(f8=5, f16=2), (2, 4, 2)),
    ],
)
def test_processors_are_divided_into_tasks_and_gpus(line: str, expected: tuple[int, int, int]) -> None:
    (job,) = swf.parse([line]).jobs
    assert (job.ntasks, job.cpus_per_task, job.gpus) == expected


def test_unknown_numbers_have_defaults() -> None:
    (job,) = swf.parse(["   " + fields(f4=0, f9=-1, f10=-1, f12=-1, f6="3.5") + "  \r"]).jobs
    assert (job.run_s, job.requested_s, job.mem_per_cpu_mb) == (1, 1, swf.Shapes().mem_per_cpu_mb)


@pytest.mark.parametrize(
    "line", [fields(f4=-1), fields(f8=-1, f5=-1), fields(f2=-1), fields(f11=2), fields(f11=3), fields(f11=4)]
)
def test_lines_without_a_job_that_ran_are_counted(line: str) -> None:
    trace = swf.parse([line, GOOD])
    assert (len(trace.jobs), trace.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 2 3", "Line 2 of the trace has 3 fields"),
        (fields(f4="x"), "Line 2 .* not a number"),
        (fields(f4="nan"), "not a number"),
        (fields(f4="inf"), "not a number"),
    ],
)
def test_a_broken_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        swf.parse([GOOD, line])


def test_jobs_are_sorted_by_submission() -> None:
    trace = swf.parse([fields(f1=5, f2=300), fields(f1=6, f2=200)])
    assert [(job.number, job.submitted_s) for job in trace.jobs] == [(1, 0), (2, 100)]


def test_the_stored_trace_is_what_its_generator_makes() -> None:
    trace = swf.read(STORED)
    assert trace.jobs == mixed_workload(1) and trace.skipped == 0
    assert len(trace.jobs) >= 5_000 and len({job.customer for job in trace.jobs}) > 10


def test_a_written_trace_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    jobs = mixed_workload(4, jobs=50)
    for name in ("one.swf.gz", "two.swf.gz"):
        swf.write(tmp_path / name, jobs)
    assert (tmp_path / "one.swf.gz").read_bytes() == (tmp_path / "two.swf.gz").read_bytes()
    assert swf.read(tmp_path / "one.swf.gz").jobs == jobs
