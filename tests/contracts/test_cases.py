"""The worked cases in the docs equal `cases.json`, which the Solidity tests compute. Python agrees."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deepgrid.billing.formulas import bill, rate_wei_per_minute
from deepgrid.lifecycle.minutes import elapsed_minutes
from deepgrid.lifecycle.states import JobStatus
from tests.contracts.rates import CUT_PERCENT, DEFINITION, HUNDREDTH, PRICES

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "contracts.md").read_text()
CASES = json.loads((importlib.resources.files("contracts") / "cases.json").read_text())
RATE_WEI = rate_wei_per_minute(DEFINITION, PRICES)


def _credits(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")


def _state(number: int) -> str:
    return JobStatus(number).name


def _minutes(row: list[int]) -> list[str]:
    waited, dated_back, ran, reported, billed, cost = row
    return [f"{waited} s", str(dated_back), f"{ran} s", str(reported), str(billed), _credits(cost)]


def _faults(row: list[int]) -> list[str]:
    state, act, passed, reported, becomes, billed, cost, *counted = row
    counters = [name for name, more in zip(("refused", "panicked", "timed out"), counted, strict=True) if more]
    what = CASES["acts"][str(act)] + (f", {reported} min" if act < 10 else "")
    return [_state(state), f"{passed} s", what, _state(becomes), str(billed), _credits(cost), " ".join(counters) or "–"]


def _cancelling(row: list[int]) -> list[str]:
    state, locked, ran, then, answer, reported, becomes, billed, cost, timed_out = row
    if state < JobStatus.SCHEDULED:
        ran_text, what = "–", "needs none"
    else:
        ran_text = f"{ran} s" if state == JobStatus.RUNNING else "–"
        what = f"after {then} s {CASES['acts'][str(answer)]}" + (f", {reported} min" if answer < 10 else "")
    counted = "timed out" if timed_out else "–"
    return [_state(state), _credits(locked), ran_text, what, _state(becomes), str(billed), _credits(cost), counted]


def _released(row: list[int]) -> list[str]:
    state, locked, ran, again, released, held, then, answer, reported, becomes, billed, cost, timed_out = row
    what = f"after {then} s {CASES['acts'][str(answer)]}" + (f", {reported} min" if answer < 10 else "")
    amounts, counted = [_credits(released), _credits(held)], "timed out" if timed_out else "–"
    ends = ["–", "–"] if JobStatus(becomes).hot else [str(billed), _credits(cost)]
    return [_state(state), _credits(locked), f"{ran} s", f"{again} s", *amounts, what, _state(becomes), *ends, counted]


def _top_ups(row: list[int]) -> list[str]:
    return [*map(_credits, row[:3]), *map(str, row[3:])]


def _automatic(row: list[int]) -> list[str]:
    bought, ran, remaining, allowed, after = row
    return [str(bought), f"{ran} s", str(remaining), "yes" if allowed else "`RemainingTimeAboveLimit`", str(after)]


TABLES: dict[str, Callable[[list[int]], list[str]]] = {
    "minutes": _minutes,
    "faults": _faults,
    "cancelling": _cancelling,
    "released": _released,
    "top_ups": _top_ups,
    "automatic": _automatic,
}


def rendered(table: str) -> str:
    """Return the rows of a table as they stand in the page."""
    return "\n".join(f"| {' | '.join(TABLES[table](row))} |" for row in CASES[table]["rows"])


@pytest.mark.parametrize("table", TABLES)
def test_the_documented_cases_equal_the_computed_rows(table: str) -> None:
    assert f"---:|\n{rendered(table)}\n\n" in PAGE or f"---|\n{rendered(table)}\n\n" in PAGE, rendered(table)


@pytest.mark.parametrize("row", CASES["minutes"]["rows"], ids=lambda row: "-".join(map(str, row[:4])))
def test_python_counts_the_same_minutes(row: list[int]) -> None:
    waited, dated_back, ran, reported, billed, cost = row
    start = -min(waited, dated_back * 60)  # seconds before the RUNNING report, not before the claim
    assert min(reported, elapsed_minutes(start, ran)) == billed
    assert bill(billed, RATE_WEI, 1000 * 100 * HUNDREDTH, CUT_PERCENT).cost == cost * HUNDREDTH


def _attacks(heading: str) -> dict[str, list[str]]:
    """Return the figures of the table below a heading, by attack: the columns between the deed and the limit."""
    section = re.search(rf"^{heading}\n(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section[1].splitlines() if line[:1] == "|"]
    return {row[0].replace(" ", "_"): row[3:-1] for row in rows[2:]}


def test_the_documented_gains_of_attacks_equal_the_computed_gains() -> None:
    found = json.loads((importlib.resources.files("contracts") / "attacks.json").read_text())
    assert _attacks("## Attacks and their gain") == {name: [_credits(gain)] for name, gain in found["gains"].items()}
    assert _attacks("### Silence") == {
        name: [_credits(customer), _credits(provider), str(unpaid)]
        for name, (customer, provider, unpaid) in found["unanswered"].items()
    }
    assert _attacks("### Gas that others pay") == {
        name: [str(gas) for gas in both] for name, both in found["gas"].items()
    }


def test_the_tests_that_the_page_names_exist() -> None:
    sources = (Path(__file__).parents[2] / "contracts" / "test").rglob("*.sol")
    tests = set(re.findall(r"function (test\w*)\(", "".join(path.read_text() for path in sources)))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 20
    assert named <= tests
