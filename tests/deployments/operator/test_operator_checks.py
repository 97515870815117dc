"""`dps operator doctor` on a real chain, without services."""

from __future__ import annotations

from pathlib import Path

from deepgrid.findings import Finding, Level
from deepgrid.operator.session import OperatorSettings
from deployments.operator.operator_checks import examine_operator
from tests.chain.grid import Grid


def bad(findings: list[Finding]) -> set[str]:
    return {one.subject for one in findings if one.level is Level.BAD}


async def test_each_part_is_checked_separately(grid: Grid, tmp_path: Path) -> None:
    book = grid.book.save(tmp_path / "grid.json")
    findings = await examine_operator(OperatorSettings(book, grid.operator_key, tmp_path / "state"))
    assert bad(findings) == {"services"}  # there are none here
    assert [one.subject for one in findings] == ["chain", "roles", "roles", "gas", "clock", "services", "state"]


async def test_a_stranger_is_told_which_roles_to_ask_for(grid: Grid, tmp_path: Path) -> None:
    stranger = grid.new_key("stranger")
    book = grid.book.save(tmp_path / "grid.json")
    findings = await examine_operator(OperatorSettings(book, grid.keys / "stranger", tmp_path / "state"))
    steps = [one.next_step for one in findings if one.subject == "roles"]
    assert steps == [
        f"Ask the admin to run dps operator deploy {option} {stranger.address}." for option in ("--assign", "--approve")
    ]
    assert bad(findings) == {"roles", "services"}


async def test_a_chain_that_is_down_hides_nothing_else(grid: Grid, tmp_path: Path) -> None:
    book = grid.book.model_copy(update={"rpc_url": "http://127.0.0.1:9"}).save(tmp_path / "grid.json")
    findings = await examine_operator(OperatorSettings(book, grid.operator_key, tmp_path / "state"))
    assert bad(findings) == {"chain", "services"}
    assert findings[-1].subject == "state"


async def test_a_key_that_others_can_read_is_named(grid: Grid, tmp_path: Path) -> None:
    grid.operator_key.chmod(0o644)
    book = grid.book.save(tmp_path / "grid.json")
    findings = await examine_operator(OperatorSettings(book, grid.operator_key, tmp_path / "state"))
    assert (findings[0].subject, findings[0].level) == ("set-up", Level.BAD)
    assert str(grid.operator_key) in findings[0].words
