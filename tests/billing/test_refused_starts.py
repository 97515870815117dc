"""Starts that the script refused are no runs in the books. The cancellation fee is still due."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.billing.entries import Runs
from deepgrid.billing.rules.kinds import Kind
from tests.billing.books import HOUR, history, kinds, provider_books
from tests.billing.histories import MIDNIGHT, Plan, S


def test_a_second_start_that_the_script_refused_is_no_run() -> None:
    made = history(Plan())
    (first,) = made.runs
    refused = replace(first, started_at=MIDNIGHT + 2 * HOUR, ended_at=MIDNIGHT + 2 * HOUR + 1, guarded=True)
    assert provider_books(made, Runs((refused, first))).clean


def test_a_refused_start_alone_earns_nothing() -> None:
    made = history(Plan())
    (first,) = made.runs
    assert kinds(provider_books(made, Runs((replace(first, guarded=True),)))) == [(1, Kind.NO_RUN)]
    lost = history(Plan(end=S.PANICKED))
    assert provider_books(lost, Runs((replace(lost.runs[0], guarded=True),))).clean


def test_a_job_that_was_cancelled_on_its_way_to_the_script_owes_the_fee_and_no_more() -> None:
    made = history(Plan(end=S.CANCELLED, cancel_requested=True, ran_s=1))
    books = provider_books(made, Runs((replace(made.runs[0], guarded=True),)))
    assert books.clean
    assert list(books.rows["billed"]) == list(books.rows["expected"]) != [0]
    assert kinds(provider_books(made, Runs(()))) == [(1, Kind.NO_RUN)]
