"""Page, table and file of a reconciliation: amounts are exact, and everything is shown."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from deepgrid.billing.plot import draw
from deepgrid.billing.reconcile import Reconciliation
from deepgrid.billing.report import file_rows, page, table
from deepgrid.lifecycle.states import JobStatus
from tests.billing.books import bill_more, history, operator_books, provider_books
from tests.billing.histories import CREDIT, MIDNIGHT, Plan

ODD = 3 * CREDIT + 1  # a rate that floats cannot hold
HUGE = 10**36


def books(kind: str) -> Reconciliation:
    made = history(
        Plan(ran_s=30, rate=ODD), Plan(rate=ODD, locked=HUGE + 1), Plan(end=JobStatus.RUNNING),
        Plan(end=JobStatus.PANICKED),
    )  # fmt: skip
    bill_more(made, 7)
    return provider_books(made) if kind == "provider" else operator_books(made)


def test_the_page_says_what_differs_and_where_the_credits_are() -> None:
    text = page(books("provider"), b"png")
    assert text.startswith("# The books do not agree: alpha")
    assert "* **job 1**, **minutes** (major, " in text
    assert "credits): billed 8 minutes" in text
    assert "`0xsettle1`" in text
    assert "panicked and not billed" in text
    assert "data:image/png;base64,cG5n" in text
    assert f"{MIDNIGHT}" not in text
    assert "the contract's balance" in page(books("operator"), b"")


def test_the_table_begins_with_what_differs() -> None:
    rows = table(books("provider"))
    assert [row["job"] for row in rows] == [1, 2, 3, 4]
    assert rows[0]["difference"] == "minutes"
    assert rows[0]["paid"] == "19.200000000000000007"
    assert rows[1]["locked"] == f"{HUGE // CREDIT}.000000000000000001"
    assert "Slurm job" not in table(books("operator"))[0]


@pytest.mark.parametrize("kind", ["provider", "operator"])
def test_the_file_holds_every_wei(kind: str, tmp_path: Path) -> None:
    found = books(kind)
    file_rows(found).to_parquet(tmp_path / "books.parquet")
    kept = pd.read_parquet(tmp_path / "books.parquet")
    assert [int(wei) for wei in kept["locked_wei"]] == list(found.rows["locked"])
    assert [int(wei) for wei in kept["paid_wei"]] == list(found.rows["paid"])
    assert list(kept["job_id"]) == list(found.rows["job_id"])
    assert kept.attrs["totals"]["locked"] == str(found.totals.locked)


@pytest.mark.parametrize("found", [books("provider"), books("operator"), provider_books(history())])
def test_the_picture_is_a_small_png(found: Reconciliation) -> None:
    picture = draw(found)
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 60_000


def test_empty_books_can_be_kept(tmp_path: Path) -> None:
    for found in (provider_books(history()), operator_books(history())):
        file_rows(found).to_parquet(tmp_path / "empty.parquet")
        assert pd.read_parquet(tmp_path / "empty.parquet").empty
        assert table(found) == []
