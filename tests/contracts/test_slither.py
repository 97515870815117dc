"""slither's findings in the contracts are those that `slither.toml` explains, one by one."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.forge import CONTRACTS, places

PROVER = Path(__file__).parents[2] / "tools/prover"
BUILT = {"FOUNDRY_PROFILE": "unoptimised"}  # it reads syntax trees only
# Detectors of style, which the formatter and reviews decide. The assembly has tests of its own.
TASTE = "assembly,naming-convention,pragma,solc-version,too-many-digits"


def findings(report: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each finding's detector, place (`Contract.name`) and text."""
    command: list[str | Path] = [
        PROVER,
        "slither",
        ".",
        "--skip-clean",
        "--foundry-out-directory",
        "out/slither",
        "--json",
        report,
    ]
    command += ["--exclude-dependencies", "--filter-paths", "node_modules", "--exclude", TASTE]
    ran = subprocess.run(command, env=places("slither") | BUILT, capture_output=True, text=True, check=False)
    assert report.exists(), f"slither did not run:\n{ran.stderr[-1500:]}"
    results = json.loads(report.read_text())
    assert results["success"], f"slither failed: {results['error']}"
    for finding in results["results"]["detectors"]:
        yield finding["check"], name_of(finding["elements"][0]), finding["description"].strip()


def name_of(element: dict[str, Any]) -> str:
    """`Contract.function`, `Contract.function.variable`, or the name alone outside of contracts."""
    names = []
    at: dict[str, Any] | None = element
    while at and at["type"] in ("function", "variable", "event", "contract", "node"):
        names.append(at["name"])
        at = at["type_specific_fields"].get("parent") if at.get("type_specific_fields") else None
    return ".".join(reversed(names))


def analysed() -> set[str]:
    """Return the sources that slither compiled. Without OpenZeppelin inside forge's root it silently sees none."""
    (built,) = (CONTRACTS / "out/slither/build-info").glob("*.json")
    return set(json.loads(built.read_text())["output"]["sources"])


@pytest.mark.long
def test_every_finding_is_explained(tmp_path: Path) -> None:
    listed = tomllib.loads((Path(__file__).parent / "slither.toml").read_text())["explained"]
    explained = [(reason["check"], place) for reason in listed for place in reason["where"]]
    found = list(findings(tmp_path / "slither.json"))
    assert {str(path.relative_to(CONTRACTS)) for path in CONTRACTS.glob("src/**/*.sol")} <= analysed()
    assert found, "slither finds nothing at all, not even what is known to be there"
    open_ = [
        f"{check} in {where}: {says.splitlines()[0]}"
        for check, where, says in found
        if not any(check == known and fnmatchcase(where, place) for known, place in explained)
    ]
    assert not open_, "fix these, or explain them in tests/contracts/slither.toml:\n" + "\n".join(open_)
    idle = [
        (known, place)
        for known, place in explained
        if not any(check == known and fnmatchcase(where, place) for check, where, _ in found)
    ]
    assert not idle, f"slither no longer finds what tests/contracts/slither.toml explains: {idle}"
