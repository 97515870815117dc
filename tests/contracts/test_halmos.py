"""halmos proves, for all values, that a job never costs more than it locked and that nothing changes a cold one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.contracts.evidence import missing, record
from tests.contracts.forge import CONTRACTS, places

PROVER = Path(__file__).parents[2] / "tools/prover"
QUICKLY_PROVED, SLOWLY_PROVED = ("Formulas",), ("Cold", "Settlement")
PROVED, REFUTED = 0, 1  # exit codes of halmos per function; with others it gave up
OPTIONS = (
    *("--function", "(check|wrong)_"),
    *("--loop", "300"),  # loops over the bytes of a record
    *("--solver-timeout-branching", "20ms"),  # a longer timeout saves paths, a shorter one saves queries
    *("--solver-timeout-assertion", "240s", "--solver-threads", "2", "--no-status"),
)


def claims(contract: str) -> set[str]:
    source = (CONTRACTS / f"test/halmos/{contract}.sol").read_text()
    return set(re.findall(r"function ((?:check|wrong)_\w+)\(", source))


def halmos(contract: str, report: Path) -> tuple[dict[str, int], str]:
    """Return the verdict of halmos on each claim of a contract, and its output."""
    command: list[str | Path] = [
        PROVER,
        "halmos",
        "--contract",
        contract,
        "--forge-build-out",
        "out/halmos",
        "--json-output",
        report,
    ]
    settings = places("halmos") | {"FOUNDRY_TEST": "test/halmos"}
    ran = subprocess.run([*command, *OPTIONS], env=settings, capture_output=True, text=True, check=False)
    assert report.exists(), f"halmos did not run:\n{(ran.stdout + ran.stderr)[-1500:]}"
    (results,) = json.loads(report.read_text())["test_results"].values()
    assert not [result["name"] for result in results if result["num_bounded_loops"]], "loops were cut short"
    return {result["name"].partition("(")[0]: result["exitcode"] for result in results}, ran.stdout


@pytest.mark.deep
@pytest.mark.timeout(2400)  # the prover's limits are CPU time, which other processes may take
@pytest.mark.parametrize("contract", [*QUICKLY_PROVED, *SLOWLY_PROVED])
def test_halmos_proves_every_check_and_refutes_every_wrong_check(contract: str, tmp_path: Path) -> None:
    judged, printed = halmos(contract, tmp_path / "halmos.json")
    assert set(judged) == claims(contract)
    expected = {name: REFUTED if name.startswith("wrong_") else PROVED for name in judged}
    assert judged == expected, printed[-3000:]
    if contract in SLOWLY_PROVED:
        record(contract)


def test_the_slow_proofs_are_about_these_contracts() -> None:
    assert not missing(SLOWLY_PROVED), "prove them again: ./run test --deep tests/contracts/test_halmos.py"
