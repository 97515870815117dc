"""Files of a usage report are for their account only, and a run replaces the files of the same period."""

from __future__ import annotations

import csv
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pandas as pd

from deepgrid.chain.ledger import Books
from tasks.usage_steps import keep_usage
from tests.billing.histories import Plan
from tests.billing.usage.reports import history, report_of


async def test_the_files_are_private_and_replaced(tmp_path: Path) -> None:
    books = cast(Books, SimpleNamespace(name="grid", folder=tmp_path / "books"))
    for report in (report_of(history()), report_of(history(Plan()))):
        await keep_usage(books, report)
    files = sorted((tmp_path / "usage").iterdir())
    assert [file.suffix for file in files] == [".csv", ".parquet"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "usage").stat().st_mode) == 0o700
    assert len(pd.read_parquet(files[1])) == 1
    with files[0].open() as rows:
        assert [row["cluster"] for row in csv.DictReader(rows)] == ["alpha"]
