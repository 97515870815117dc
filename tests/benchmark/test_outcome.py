"""The measured labels of a cluster after a round of programs."""

from __future__ import annotations

from deepgrid.benchmark.outcome import (
    Comparison,
    Evidence,
    Outcome,
    comparisons,
    nothing_worked,
    summary,
    update_labels,
)
from deepgrid.lifecycle.job import Label

LAST = (
    Label("compute.gflops", "10.00"),
    Label("gpu", "a100"),
    Label("os", "linux"),
    Label("storage.scratch.read.iops", "5.00"),
    Label("storage.shared-tmp.read.iops", "6.00"),
)


def test_a_program_that_failed_keeps_its_last_value() -> None:
    outcomes = [Outcome("hpl", problem="it crashed"), Outcome("machine", (Label("os", "plan9"), Label("gpu", "h100")))]
    labels = update_labels(LAST, outcomes)
    assert Label("compute.gflops", "10.00") in labels
    assert {Label("os", "plan9"), Label("gpu", "h100")} < set(labels)


def test_what_a_program_no_longer_reports_is_gone() -> None:
    assert Label("gpu", "a100") not in update_labels(LAST, [Outcome("machine", (Label("os", "linux"),))])


def test_a_volume_that_failed_keeps_its_last_figures_beside_the_others_new_ones() -> None:
    outcome = Outcome("storage", (Label("storage.scratch.read.iops", "50.00"),), "shared-tmp: no such folder")
    assert {Label("storage.scratch.read.iops", "50.00"), Label("storage.shared-tmp.read.iops", "6.00")} < set(
        update_labels(LAST, [outcome])
    )


def test_the_providers_own_labels_are_not_measured_again() -> None:
    labels = update_labels(
        LAST, [Outcome("hpl", (Label("compute.gflops", "99.00"),))], (Label("compute.gflops", "1.00"),)
    )
    assert "compute.gflops" not in {label.key for label in labels}


def test_both_sides_are_shown_for_every_label() -> None:
    rows = comparisons(
        (Label("gpu", "a100"), Label("os", "linux")), (Label("compute.gflops", "1.00"), Label("os", "linux"))
    )
    assert rows == (
        Comparison("compute.gflops", "", "1.00"),
        Comparison("gpu", "a100", ""),
        Comparison("os", "linux", "linux"),
    )
    assert [row.moved for row in rows] == [True, True, False]


def test_a_run_says_what_moved_and_what_failed() -> None:
    rows = (Comparison("compute.gflops", "1.00", "2.00"), Comparison("gpu", "", "a100"), Comparison("os", "x", "x"))
    failed = Outcome("network", problem="no route.")
    assert summary(rows, [Outcome("hpl"), failed], "is approved") == (
        "Proposed compute.gflops 1.00 -> 2.00, gpu none -> a100; the provider is approved; "
        "network failed (no route); its last values stay."
    )
    assert summary(rows[2:], [], "") == "Nothing moved by more than 5 %."


def test_the_message_of_a_run_is_one_sentence_however_much_moved() -> None:
    rows = tuple(Comparison(f"storage.{number}", "", "1.00") for number in range(30))
    noisy = Outcome("storage", evidence=Evidence(noisy=("storage.1",)))
    failed = Outcome("hpl", problem="it\ncrashed. Really.")
    words = summary(rows, [noisy, failed], "is approved", "os is slow", {"hpl": "2026-11-21"})
    assert words == (
        "Proposed storage.0 none -> 1.00, storage.1 none -> 1.00, storage.2 none -> 1.00 and 27 more; the provider is"
        " approved; storage is noisy; the cluster is degraded: os is slow; hpl failed (it crashed; Really); its"
        " last values of 2026-11-21 stay."
    )


def test_a_round_fails_only_when_nothing_was_measured() -> None:
    failed, skipped = Outcome("hpl", problem="it crashed"), Outcome("network")
    partly = Outcome("storage", (Label("storage.scratch.read.iops", "1.00"),), "shared-tmp: no such folder")
    assert nothing_worked([failed, skipped])
    assert not nothing_worked([failed, partly])
    assert not nothing_worked([skipped])
