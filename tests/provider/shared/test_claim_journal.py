"""A journal of claims survives a restart, and ignores what it cannot read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.receipt_desk import ReceiptJournal, Seen

KEY = JobKey(31337, "0x" + "ab" * 20, job_id=7, claimed_at=1_700_000_000)
AGAIN = replace(KEY, claimed_at=1_700_000_060)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "alpha.untold.json"


def test_the_journal_survives_a_restart(file: Path) -> None:
    journal = ClaimJournal(file, like=KEY)
    assert set(journal) == set()
    journal.add([KEY, AGAIN])
    assert set(journal) == set(ClaimJournal(file, like=KEY)) == {KEY, AGAIN}
    journal.discard([KEY])
    assert set(journal) == set(ClaimJournal(file, like=KEY)) == {AGAIN}


def test_claims_of_another_grid_are_ignored(file: Path) -> None:
    ClaimJournal(file, like=KEY).add([KEY])
    assert set(ClaimJournal(file, like=replace(KEY, chain_id=1))) == set()


def test_a_damaged_file_is_ignored(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.parent.mkdir()
    file.write_text('["deepgrid:')
    assert set(ClaimJournal(file, like=KEY)) == set()
    assert "does not hold claims" in caplog.text


def test_without_a_writable_folder_claims_are_kept_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("in the way")
    journal = ClaimJournal(tmp_path / "state" / "alpha.untold.json", like=KEY)
    journal.add([KEY])
    assert set(journal) == {KEY}
    assert "cannot be written" in caplog.text


def test_a_file_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    state, blocked = tmp_path / "state", tmp_path / "blocked"
    state.write_text("in the way, as a full disk would be")
    claims = ClaimJournal(state / "alpha.untold.json", like=KEY)
    receipts = ReceiptJournal(state / "alpha.receipts.json", like=KEY)
    claims.hold([KEY])
    receipts.add(KEY, Seen())
    state.rename(blocked)
    claims.hold([KEY])
    receipts.save()
    assert set(ClaimJournal(state / "alpha.untold.json", like=KEY)) == {KEY}
    assert len(ReceiptJournal(state / "alpha.receipts.json", like=KEY)) == 1
