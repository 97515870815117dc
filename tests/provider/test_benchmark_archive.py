"""Results of benchmarks are kept: over years, in parallel, through crashes, and one measurement at a time."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas
import pytest

from deepgrid.benchmark.figures import Samples
from deepgrid.benchmark.outcome import Evidence, Outcome
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Label
from deepgrid.provider import benchmark_archive
from deepgrid.provider.benchmark_archive import MOST_OUTPUT_CHARACTERS, BenchmarkArchive

AT = int(datetime(2026, 12, 27, 3, 30, tzinfo=UTC).timestamp())
NEXT_YEAR = AT + 7 * 86400
HPL = Outcome(
    "hpl",
    (Label("compute.benchmark", "hpl"), Label("compute.gflops", "12.00")),
    evidence=Evidence(
        {"compute.gflops": Samples((11.0, 12.0, 30.0))},
        {"N": "4000", "P x Q": "4 x 2"},
        "HPLinpack 2.0\n\x1b[2Jdone\n",
        ("compute.gflops",),
    ),
)


def test_results_are_kept_over_the_years_with_their_samples_and_their_output(tmp_path: Path) -> None:
    archive = BenchmarkArchive(tmp_path / "benchmarks" / "alpha")
    archive.keep(HPL, AT)
    archive.keep(HPL, NEXT_YEAR)
    assert [file.name for file in sorted(archive.folder.glob("*.parquet"))] == [
        "results-2026.parquet",
        "results-2027.parquet",
    ]
    results = BenchmarkArchive(archive.folder).results()
    assert [(one.at, one.key) for one in results][1:3] == [(AT, "compute.gflops"), (NEXT_YEAR, "compute.benchmark")]
    figure = results[1]
    assert (figure.samples, figure.value, figure.remark) == ((11.0, 12.0, 30.0), "12.00", "noisy")
    assert figure.parameters == {"N": "4000", "P x Q": "4 x 2"}
    assert archive.output(figure.output) == "HPLinpack 2.0\n [2Jdone\n", "nothing in it steers a terminal"
    assert {file.stat().st_mode & 0o777 for file in archive.folder.rglob("*.*")} == {0o600}


def test_other_programs_can_read_the_file(tmp_path: Path) -> None:
    archive = BenchmarkArchive(tmp_path)
    archive.keep(HPL, AT)
    archive.keep(HPL, AT + 60)
    frame = pandas.read_parquet(tmp_path / "results-2026.parquet")
    assert list(frame["key"]) == ["compute.benchmark", "compute.gflops"] * 2
    assert frame["at"].iloc[0] == pandas.Timestamp("2026-12-27T03:30Z")


def test_huge_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    archive = BenchmarkArchive(tmp_path)
    huge = "begin " + "x" * 3 * MOST_OUTPUT_CHARACTERS + " end"
    (one, _) = archive.keep(replace(HPL, evidence=replace(HPL.evidence, output=huge)), AT)
    kept = archive.output(one.output)
    assert len(kept) < MOST_OUTPUT_CHARACTERS + 100
    assert kept.startswith("begin x") and kept.endswith("x end")
    assert "characters are left out" in kept


def test_a_damaged_file_is_named_and_a_crash_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = BenchmarkArchive(tmp_path)
    archive.keep(HPL, AT)

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(benchmark_archive, "replace_file", crash)
        with pytest.raises(ConfigurationError, match="The result of hpl cannot be kept: No space left on device"):
            archive.keep(HPL, AT + 60)
    assert len(archive.results()) == 2
    (tmp_path / "results-2026.parquet").write_bytes(b"garbage")
    with pytest.raises(ConfigurationError, match="does not hold results of benchmarks"):
        archive.results()


async def test_of_two_measurements_of_a_cluster_one_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    order: list[str] = []
    first_runs = asyncio.Event()

    async def first() -> None:
        async with BenchmarkArchive(tmp_path).alone("alpha"):
            first_runs.set()
            while "waiting for its end" not in caplog.text:
                await asyncio.sleep(0.01)
            order.append("first")

    async def second() -> None:
        await first_runs.wait()
        async with BenchmarkArchive(tmp_path).alone("alpha", poll_s=0.01):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order == ["first", "second"]
    assert caplog.text.count("another benchmark of alpha is running") == 1
