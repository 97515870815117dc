"""The bill is the same on chain (`billing.json`, which the Solidity tests compute), in Python and in the docs."""

from __future__ import annotations

import importlib.resources
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from deepgrid.billing.formulas import bill, rate_wei_per_minute
from deepgrid.lifecycle.minutes import elapsed_minutes
from tests.contracts.rates import CUT_PERCENT, DEFINITION, HUNDREDTH, PRICES

ROOT = Path(__file__).parents[2]
ROWS: list[list[int]] = json.loads((importlib.resources.files("contracts") / "billing.json").read_text())["rows"]
# The page has whole credits, the tests compute in hundredths. Seconds and minutes are the same.
SCALES = (100, 1, 1, 1, 100, 100, 100, 100)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row[:3])))
def test_python_computes_the_contracts_bill(row: list[int]) -> None:
    locked, elapsed_seconds, reported, billed, cost, provider, cut, refund = row
    assert min(reported, elapsed_minutes(0, elapsed_seconds)) == billed
    divided = bill(billed, rate_wei_per_minute(DEFINITION, PRICES), locked * HUNDREDTH, CUT_PERCENT)
    parts = (divided.cost, divided.paid, divided.cut, divided.refunded)
    assert parts == tuple(part * HUNDREDTH for part in (cost, provider, cut, refund))


def test_the_documented_table_equals_the_computed_rows() -> None:
    text = (ROOT / "docs" / "explanation" / "contracts.md").read_text()
    table = re.findall(r"^\| ([\d.]+) \| (\d+) s " + r"\| ([\d.]+) " * 6 + r"\|$", text, re.MULTILINE)
    documented = [[int(Decimal(cell) * scale) for cell, scale in zip(row, SCALES, strict=True)] for row in table]
    assert documented == ROWS
