"""`dps provider usage` and `dps operator usage` print the report that the page shows, and harm no terminal."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.billing.usage.capacity import Offers
from deepgrid.billing.usage.usage_figures import UsageReport
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deployments.cli.usage import show_usage
from tests.billing.histories import CREDIT, ME, MIDNIGHT, Plan
from tests.billing.usage.reports import OFFERS, history, report_of

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "usage.md"
ADA, BOB = "0x8c0a0Ad6bBDA71e04e1e0b0cD5aC3a1f5B8E6Ada", "0x51E0fD0D0bB9a0c8d3D4d3C3a7F3a4bD3e6C0B0b"
ALPHA = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
BIG = JobDefinition(gpus=1, mem_per_cpu_mb=2000, cpus_per_task=16, ntasks=1, definition_hash="")


def example() -> UsageReport:
    """Return the report on the page: two customers, a node failure, an error, and a day before with one job."""
    hour = MIDNIGHT + 3600
    made = history(
        Plan(customer=ADA, provider=ALPHA, submit=MIDNIGHT - 7200, ran_s=1800, asked=BIG),
        Plan(customer=ADA, provider=ALPHA, submit=hour, ran_s=2400, asked=BIG),
        Plan(customer=BOB, provider=ALPHA, submit=hour + 60, ran_s=600, end=JobStatus.FAILED),
        Plan(customer=BOB, provider=ALPHA, submit=hour + 90, ran_s=900, end=JobStatus.FAILED, fault=True, asked=BIG),
        Plan(customer=BOB, provider=ALPHA, submit=hour + 9000, end=JobStatus.RUNNING),
    )
    made.jobs[3] = replace(made.jobs[3], exit_status=768)
    made.jobs[4] = replace(made.jobs[4], last_error="a node of the cluster failed")
    changes = (replace(OFFERS.changes[0], provider=ALPHA),)
    return replace(report_of(made, ALPHA, Offers(changes, {ALPHA: "alpha"})), name="alpha")


def shown_on_the_page() -> str:
    found = re.search(r"<!-- not run: [^>]*report -->\n\n```\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    return found[1]


def test_the_page_shows_what_the_verb_prints(capsys: pytest.CaptureFixture[str]) -> None:
    show_usage(example(), as_json=False, csv_file=None)
    assert capsys.readouterr().out == shown_on_the_page()


def test_json_has_the_same_figures_and_the_file_is_private(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    show_usage(example(), as_json=True, csv_file=tmp_path / "jobs.csv")
    found = json.loads(capsys.readouterr().out)
    assert found["period"]["totals"]["earned_wei"] == str(40 * CREDIT)
    assert [one["address"] for one in found["period"]["customers"]] == [ADA, BOB]
    assert stat.S_IMODE((tmp_path / "jobs.csv").stat().st_mode) == 0o600
    assert (tmp_path / "jobs.csv").read_text().count("\n") == 5


def test_names_and_errors_do_not_reach_the_terminal_as_control(capsys: pytest.CaptureFixture[str]) -> None:
    made = history(Plan(end=JobStatus.FAILED, report_after_s=0))
    made.jobs[1] = replace(made.jobs[1], last_error="\x1b[2Jwiped\u202e")
    show_usage(report_of(made, offers=Offers(OFFERS.changes, {ME: "\x1b]0;title\x07"})), as_json=False, csv_file=None)
    shown = capsys.readouterr().out
    assert "wiped" in shown
    assert not any(c in shown for c in "\x1b\x07\u202e")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        show_usage(example(), as_json=False, csv_file=tmp_path / "missing" / "jobs.csv")
