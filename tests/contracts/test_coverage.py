"""The Solidity tests cover the lines and branches of contracts/src, as forge counts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.contracts.forge import forge

LEAST_PERCENT = 95
# Coverage runs without the optimiser, where gas figures differ. Random histories would only repeat the rest.
LEFT_OUT = "Gas|Invariants"


@dataclass
class Coverage:
    """Numbers of lines and branches, and those that no test reached, as `file:line`."""

    lines: int = 0
    branches: int = 0
    missed_lines: list[str] = field(default_factory=list)
    missed_branches: list[str] = field(default_factory=list)

    @property
    def line_percent(self) -> float:
        return 100 - 100 * len(self.missed_lines) / self.lines

    @property
    def branch_percent(self) -> float:
        return 100 - 100 * len(self.missed_branches) / self.branches


def read(report: str) -> tuple[Coverage, set[str]]:
    """Return the coverage of an lcov report, and its files."""
    coverage, files, file = Coverage(), set(), ""
    for entry in report.splitlines():
        kind, _, rest = entry.partition(":")
        if kind == "SF":
            file = rest
            files.add(file)
        elif kind == "DA":
            line, hits = rest.split(",")[:2]
            coverage.lines += 1
            if hits == "0":
                coverage.missed_lines.append(f"{file}:{line}")
        elif kind == "BRDA":
            line, _, _, hits = rest.split(",")
            coverage.branches += 1
            if hits in ("0", "-"):
                coverage.missed_branches.append(f"{file}:{line}")
    return coverage, files


@pytest.mark.deep  # it compiles without the optimiser, which takes minutes
@pytest.mark.timeout(1800)
def test_line_and_branch_coverage_is_at_least_95_percent(tmp_path: Path) -> None:
    report = tmp_path / "lcov"
    forge(
        "coverage",
        *("--report", "lcov", "--report-file", str(report)),
        *("--no-match-contract", LEFT_OUT, "--no-match-coverage", "^test/"),
        builds="coverage",
    )
    coverage, files = read(report.read_text())
    print(f"lines {coverage.line_percent:.1f} %, branches {coverage.branch_percent:.1f} %")
    print("missed:", *coverage.missed_lines, *coverage.missed_branches)
    assert {"src/MetaScheduler.sol", "src/RareCalls.sol", "src/ProviderManager.sol"} <= files
    assert all(file.startswith("src/") for file in files)
    assert coverage.line_percent >= LEAST_PERCENT, f"no test reaches {coverage.missed_lines}"
    assert coverage.branch_percent >= LEAST_PERCENT, f"no test takes a branch of {coverage.missed_branches}"
