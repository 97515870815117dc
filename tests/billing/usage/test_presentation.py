"""Tables, page, files and plot of a usage report: exact, and what strangers wrote stays text."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.usage.capacity import Offers
from deepgrid.billing.usage.usage_files import as_csv, file_rows, harmless
from deepgrid.billing.usage.usage_page import escape_markdown, page
from deepgrid.billing.usage.usage_plot import draw_usage
from deepgrid.billing.usage.usage_tables import as_json, change, duration, message, percent, tables
from deepgrid.lifecycle.states import JobStatus
from tests.billing.histories import CREDIT, ME, MIDNIGHT, Plan
from tests.billing.usage.deceptive import OURS, cells, evil_report, tags, visible_of
from tests.billing.usage.reports import history, report_of

S = JobStatus
ODD = 3 * CREDIT + 1  # a rate that floats cannot hold


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_in_a_cell_stays_one_cell_without_markup(text: str) -> None:
    shown = f"| a | b |\n|---|---|\n| {escape_markdown(text)} | end |"
    assert tags(shown) <= OURS
    assert cells(shown)[-1] == "end" and len(cells(shown)) == 4
    assert cells(shown)[2] == visible_of(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_harmless_text_keeps_what_one_can_see(text: str) -> None:
    assert harmless(text).replace("'", "").strip() == visible_of(text).replace("'", "").strip()
    assert not harmless(text).lstrip().startswith(("=", "+", "-", "@", "\uff1d"))


def test_the_page_compares_with_the_period_before() -> None:
    made = history(Plan(ran_s=60, rate=ODD), Plan(submit=MIDNIGHT - 7200, ran_s=120, rate=ODD))
    report = report_of(made, ME)
    shown = page(report, b"png")
    assert message(report).startswith(
        "From 2027-01-15 to 2027-01-16, 1 job earned 2.400000000000000001 credits;"
        " 0xCustomer paid most: 3.000000000000000001 credits; in use: "
    )
    assert shown.startswith("# Usage of alpha\n\nPeriod\\: ")
    assert "| earned | 2.400000000000000001 | 4.800000000000000002 | \\-50.0 % |" in shown
    assert "| finished | 1 | 100.0 % | 1 | \\+0.0 % |" in shown
    assert "data:image/png;base64,cG5n" in shown
    assert "## Failed jobs\n\nNone." in shown


def test_a_failed_job_is_listed_with_its_error_and_status() -> None:
    table = tables(evil_report("out of luck"))[-1]
    assert table.rows == [["1", "out of luck", "failed by itself", "exit status 3", "out of luck", "0xCustomer"]]


def test_only_the_first_rows_are_shown_and_the_title_says_so() -> None:
    made = history(*(Plan(customer=f"0x{number:02}", end=S.FAILED) for number in range(25)))
    found = {table.title: len(table.rows) for table in tables(report_of(made))}
    assert found["Customers: the first 20 of 25"] == found["Failed jobs: the newest 20 of 25"] == 20


def test_the_report_says_which_offer_is_assumed() -> None:
    assert "Only a later offer of alpha (0xMe) is known" in page(evil_report("alpha"), b"").replace("\\", "")


def test_the_json_has_exact_texts_of_wei() -> None:
    report = report_of(history(Plan(ran_s=60, rate=ODD)))
    found = json.loads(json.dumps(as_json(report)))
    assert found["period"]["totals"]["earned_wei"] == str(report.now.totals.paid_wei)
    assert found["period"]["customers"][0]["address"] == "0xCustomer"
    assert found["period"]["clusters"][0]["name"] == "alpha"
    assert found["before"]["totals"]["jobs"] == 0


def test_the_parquet_file_holds_every_wei_and_the_figures(tmp_path: Path) -> None:
    made = history(Plan(rate=ODD, locked=10**36 + 1), Plan(end=S.PENDING))
    report = report_of(made)
    file_rows(report).to_parquet(tmp_path / "usage.parquet")
    kept = pd.read_parquet(tmp_path / "usage.parquet")
    assert sum(int(wei) for wei in kept["earned_wei"]) == report.now.totals.paid_wei
    assert sum(int(wei) for wei in kept["refunded_wei"]) == report.now.totals.refunded_wei
    assert kept.attrs["period"]["totals"]["cut_wei"] == str(report.now.totals.cut_wei)
    assert kept["claimed_at"].isna().tolist() == [False, True]


def test_an_empty_report_can_be_shown_and_kept(tmp_path: Path) -> None:
    empty = report_of(history(), offers=Offers())
    assert message(empty) == "From 2027-01-15 to 2027-01-16, 0 jobs earned 0 credits."
    assert "None." in page(empty, draw_usage(empty))
    file_rows(empty).to_parquet(tmp_path / "empty.parquet")
    assert pd.read_parquet(tmp_path / "empty.parquet").empty
    assert as_csv(file_rows(empty)).count("\n") == 1


def test_the_picture_is_a_small_png() -> None:
    picture = draw_usage(report_of(history(Plan(), Plan(end=S.RUNNING))))
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 60_000


def test_shares_changes_and_durations_in_words() -> None:
    assert [percent(1, 3), percent(0, 5), percent(5, 0), percent(15, 10)] == ["33.3 %", "0.0 %", "-", "150.0 %"]
    assert [change(3, 2), change(1, 2), change(1, 0), change(0, 0)] == ["+50.0 %", "-50.0 %", "new", ""]
    assert [duration(one) for one in (None, 0, 59, 60, 3725, 90_000, 172_800)] == [
        "-", "0 s", "59 s", "1 min", "1 h 2 min", "1 d 1 h", "2 d",
    ]  # fmt: skip
    assert percent(10**40 + 1, 2 * 10**40) == "50.0 %"
