"""Claims that were carried without their run are known after a restart, until their run was told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deployments.provider.carried_jobs import CarriedJobs

KEY = JobKey(31337, "0x" + "ab" * 20, job_id=7, claimed_at=1_700_000_000)
AGAIN = replace(KEY, claimed_at=1_700_000_060)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "alpha.untold.json"


def test_what_was_added_is_known_after_a_restart_until_it_is_discarded(file: Path) -> None:
    untold = CarriedJobs(file, like=KEY)
    assert set(untold) == set()
    untold.add([KEY, AGAIN])
    assert set(untold) == set(CarriedJobs(file, like=KEY)) == {KEY, AGAIN}
    untold.discard([KEY])
    assert set(untold) == set(CarriedJobs(file, like=KEY)) == {AGAIN}


def test_claims_of_another_grid_are_not_ours(file: Path) -> None:
    CarriedJobs(file, like=KEY).add([KEY])
    assert set(CarriedJobs(file, like=replace(KEY, chain_id=1))) == set()


def test_a_file_that_holds_no_claims_is_none(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.parent.mkdir()
    file.write_text('["deepgrid:')
    assert set(CarriedJobs(file, like=KEY)) == set()
    assert "does not hold claims" in caplog.text


def test_a_folder_that_cannot_be_written_costs_memory_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("in the way")
    untold = CarriedJobs(tmp_path / "state" / "alpha.untold.json", like=KEY)
    untold.add([KEY])
    assert set(untold) == {KEY}
    assert "cannot be written" in caplog.text
