"""Every kind of difference is found by its own name, alone, and is described. The fast way equals the obvious one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.entries import Runs
from deepgrid.billing.reconcile import reconcile
from deepgrid.billing.report import page
from deepgrid.billing.rules.differences import Side, same_exit
from deepgrid.billing.rules.kinds import Kind, Severity, severity_of
from tests.billing.books import history, provider_books
from tests.billing.frauds import BASE, plant
from tests.billing.histories import DAY, ME, History, Plan, plans
from tests.billing.plain_books import plain_findings

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "billing.md"
SINGLE = [kind for kind in Kind if kind not in (Kind.A_MINUTE_TOO_MUCH, Kind.LATE_ENDS)]


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_is_found_by_its_name_among_honest_jobs(kind: Kind) -> None:
    made = history(*[replace(BASE, ran_s=100 + 7 * number) for number in range(6)])
    planted = plant(made, kind)
    books = provider_books(made)
    if kind is Kind.LATE_ENDS:
        assert books.clean
        assert {(one.kind, one.jobs, one.customer) for one in books.patterns} >= {(kind, len(planted), "0xPunctual")}
        return
    assert {(one.job_id, one.kind) for one in books.differences} == {(job_id, kind) for job_id in planted}
    for one in books.differences:
        assert one.evidence
        affects_credits = kind not in (Kind.ANOTHER_EXIT, Kind.NOT_ON_CHAIN, Kind.RETURNED_RAN)
        assert (one.wei > 0) == affects_credits
        assert f"**{kind}** ({one.severity}, " in page(books, b"")


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_a_severity_and_says_what_to_do(kind: Kind) -> None:
    text = PAGE.read_text().split(f"### `{kind}`\n")
    assert len(text) == 2, f"billing.md has no paragraph about {kind}"
    assert len(text[1].split("\n#")[0].strip()) > 100
    assert severity_of(kind) in Severity


@settings(max_examples=60, deadline=None)
@given(st.lists(plans, max_size=5), st.lists(st.sampled_from(SINGLE), max_size=5), st.integers(0, 3))
def test_the_fast_books_find_what_the_obvious_ones_find(some: list[Plan], kinds: list[Kind], tolerance: int) -> None:
    made = history(*(replace(plan, provider=ME) for plan in some))
    for kind in kinds:
        plant(made, kind)
    books = provider_books(made, tolerance=tolerance)
    ledger = replace(made.ledger(), jobs=made.jobs)
    found = {one for one in (*books.differences, *books.notes) if one.kind is not Kind.A_MINUTE_TOO_MUCH}
    shared = {(run.slurm_id, run.started_at or 0) for run in made.runs if _is_shared(made, run.slurm_id)}
    side = Side(DAY, tolerance_minutes=tolerance, strays_wei=ledger.strays_wei, shared=frozenset(shared))
    assert found == plain_findings(ledger, tuple(made.runs), ME, side)


def _is_shared(made: History, slurm_id: int) -> bool:
    return len({run.job_id for run in made.runs if run.slurm_id == slurm_id}) > 1


def test_a_few_high_bills_are_chance_and_many_are_a_pattern() -> None:
    one = history(*[BASE] * 9)
    assert provider_books(one).clean
    made = history(*[replace(BASE, ran_s=59)] * 9)
    planted = plant(made, Kind.A_MINUTE_TOO_MUCH)
    books = provider_books(made)
    assert {one.job_id for one in books.differences} == planted
    ours = [one for one in books.patterns if one.kind is Kind.A_MINUTE_TOO_MUCH]
    assert [(one.provider, bool(one.customer), one.jobs) for one in ours] == [(ME, False, 8), (ME, True, 8)]
    assert "8 of 17 bills are too high within the tolerance and 0 too low, +0.47 minutes" in ours[0].evidence
    assert "## Patterns" in page(books, b"")


def test_without_accounting_a_running_job_without_a_record_is_no_difference() -> None:
    """An outage of accounting must not raise an alarm."""
    made = history()
    plant(made, Kind.NOT_IN_SLURM)
    assert provider_books(made, Runs((), complete=False)).clean


@pytest.mark.parametrize(
    ("on_chain", "in_slurm", "same"),
    [(768, 768, True), (255 << 8, 127 << 8, True), (128 << 8, 128 << 8, True), (9, 9, True), (0, 256, False),
     (127 << 8, 255 << 8, False), (256, 0, False)],
)  # fmt: skip
def test_exit_codes_that_accounting_halves_are_the_same(on_chain: int, in_slurm: int, same: bool) -> None:
    assert same_exit(on_chain, in_slurm) == same


BY_RECEIPTS = (
    Kind.MINUTES, Kind.MORE_THAN_BOUGHT, Kind.FAULT_BILLED, Kind.A_MINUTE_TOO_MUCH, Kind.RAN_ON, Kind.RAN_EARLY,
    Kind.ANOTHER_END, Kind.ANOTHER_EXIT, Kind.FEWER_CPUS, Kind.FEWER_GPUS, Kind.LESS_MEMORY, Kind.TRANSFERS,
)  # fmt: skip


@pytest.mark.parametrize("kind", BY_RECEIPTS)
def test_the_operator_finds_it_by_receipts_and_a_missing_receipt_proves_nothing(kind: Kind) -> None:
    made = history(*[replace(BASE, ran_s=100 + 7 * number) for number in range(6)])
    planted = plant(made, kind)
    signed = Runs(tuple(run for run in made.runs if run.job_id > 3), complete=False, source="receipts", partial=True)
    books = reconcile("grid", made.ledger(), DAY, runs=signed)
    assert {(one.job_id, one.kind) for one in books.differences} == {(job_id, kind) for job_id in planted}
    assert books.notes == ()
