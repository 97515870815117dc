"""Long tests of the contracts: fuzz tests, random histories against a second model, planted mistakes.

`./run test --long` runs the random histories and some mistakes with the profile `long` of contracts/foundry.toml.
`./run test --deep` runs all with `deep`, which is many times longer.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_utils.abi import function_abi_to_4byte_selector

from tests.contracts.forge import COMPILED, CONTRACTS
from tests.contracts.mutation import read_mutants, table, trial

# The profile `deep` takes an hour or two.
pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

PROFILE = os.environ.get("FOUNDRY_PROFILE", "long")
# The profile `long` is built without optimisation, so its tests take the contracts as they are deployed.
DEPLOYED = {} if PROFILE == "deep" else {"DEPLOYED": "true"}
# The histories leave out the functions that change roles, because other rules hold with other roles.
RULERS = {"grantRole", "revokeRole", "renounceRole", "transferOwnership", "renounceOwnership"}
GIFT = "0xa9059cbb"  # a transfer of credits
COLD = {"4": "CANCELLED", "5": "FINISHED", "6": "FAILED", "7": "OUT_OF_CREDITS", "8": "PANICKED"}


@pytest.fixture
def notes() -> Iterator[Path]:
    """A file that forge may write, with one line per history."""
    file = CONTRACTS / "cache" / f"reach-{os.getpid()}.jsonl"
    yield file
    file.unlink(missing_ok=True)


def forge_test(*arguments: str, **environment: str) -> str:
    """Run tests of the contracts with the current profile. Returns forge's output and fails with it."""
    chance = ["--fuzz-seed", hex(secrets.randbits(256))] if PROFILE == "deep" else []
    command = ["nice", "node_modules/.bin/forge", "test", *chance, *arguments]
    settings = os.environ | {"FOUNDRY_PROFILE": PROFILE} | DEPLOYED | environment
    done = subprocess.run(command, cwd=CONTRACTS, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def functions_that_change_something() -> dict[str, str]:
    """Return the names of all functions that change state, by selector."""
    found = {}
    for contract in ("MetaScheduler", "ProviderManager"):
        for entry in json.loads((COMPILED / f"{contract}.json").read_text())["abi"]:
            if entry["type"] == "function" and entry["stateMutability"] == "nonpayable":
                found["0x" + function_abi_to_4byte_selector(entry).hex()] = entry["name"]
    return {selector: name for selector, name in found.items() if name not in RULERS}


@pytest.mark.deep
def test_fuzz_tests_hold_at_length() -> None:
    assert "0 failed" in forge_test("--match-test", "^testFuzz")


def test_random_histories_follow_the_model_and_reach_every_function_and_state(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge_test("--match-test", "^invariant_", DEEPGRID_REACH=f"cache/{notes.name}")
    passed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for line in notes.read_text().splitlines():
        for what, counts in json.loads(line).items():
            passed[what] += counts[0]
            refused[what] += sum(counts[1:])
    names = functions_that_change_something()
    with capsys.disabled():
        print(f"\nreached by random histories ({PROFILE}):")
        passed.pop(GIFT, None)  # shown as gifts
        for what in sorted(passed, key=lambda what: (what not in names, names.get(what, what))):
            name = names.get(what) or COLD.get(what) or what
            refusals = f"{refused[what]:9} refused" if what in names else ""
            print(f"  {name:28} {passed[what]:9}{refusals}")
    assert [name for selector, name in names.items() if not passed[selector]] == []
    assert [state for number, state in COLD.items() if not passed[number]] == []
    assert passed["back in time"]
    assert passed["by years"]
    assert passed["skipped items"]
    assert passed["releases"]
    assert passed["gifts"]


def test_planted_mistakes_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    mutants = read_mutants()
    chosen = mutants if PROFILE == "deep" else [mutant for mutant in mutants if not mutant.deep]
    outcomes = trial(chosen, unchanged_too=PROFILE == "deep")
    with capsys.disabled():
        print("\n" + table(outcomes))
    assert len(outcomes) >= (110 if PROFILE == "deep" else 5)
    assert len({mutant.file for mutant in chosen}) >= (20 if PROFILE == "deep" else 5)
    assert [outcome.mutant.why for outcome in outcomes if not outcome.caught_by] == []
    # `./run test` passes all tests on the unchanged contracts. A test that fails for another reason fails each time.
    assert not set.intersection(*(set(outcome.caught_by) for outcome in outcomes))
