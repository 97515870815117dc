"""Plants the mistakes of `mutants.toml` one by one in a private copy of the contracts. Prints which test caught which
mistake.

    python -m tests.contracts.mutation [WORDS]    all of them, or only descriptions with these words

Runs the tests of `forge test` without gas figures and random histories (except the fixed one). They are compiled once,
without optimisation, and deploy the bytecode of each mutant. If none of them fails, they are compiled with the mutant
too, because some tests call libraries.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from queue import SimpleQueue

from tests.contracts.forge import COMPILED, CONTRACTS

WORKERS = 2
DEPLOYED = ("Credit", "MetaScheduler", "ProviderManager")  # the contracts that the tests deploy
BUILD = "out/unoptimised", "cache/unoptimised"
SKIPPED = ("--skip", "test/Gas.t.sol", "test/Sizes.t.sol", "test/halmos/**")  # what needs the optimised bytecode
NEVER = "GiftsInvariants"  # random histories
SLOW = "AttacksTest|InvariantsTest|MovesTest"  # they run only if no other test fails
HEADER = f"{'mutant':72}  {'file':24}  caught by"
LIMIT_CPU_S = 600  # a mistake may make a test run forever; processor time, because machines are busy


@dataclass(frozen=True)
class Mutant:
    """One mistake: `old`, which occurs once in a source, becomes `new`. `deep`: only in a nightly run."""

    why: str
    file: str
    old: str
    new: str
    deep: bool = False


@dataclass(frozen=True)
class Outcome:
    """The tests that failed with a mutant, as `Suite.test`. Empty if none caught it."""

    mutant: Mutant
    caught_by: tuple[str, ...]


class Unfit(Exception):
    """The mutants do not fit the sources, or the tests fail without a mutant."""


def read_mutants() -> list[Mutant]:
    """Return all mutants. Raises Unfit if one of them no longer fits the sources."""
    listed = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())["mutant"]
    mutants = [Mutant(**entry) for entry in listed]
    for mutant in mutants:
        found = (CONTRACTS / "src" / mutant.file).read_text().count(mutant.old)
        if found != 1:
            raise Unfit(f"mutant '{mutant.why}': its old text stands {found} times in {mutant.file}, not once")
    return mutants


def trial(
    mutants: Sequence[Mutant], *, unchanged_too: bool = True, on_outcome: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Plant each mutant in turn. Raises Unfit if a mutant does not compile, or if the tests fail without one.

    The latter is tried only with `unchanged_too`. `on_outcome` is called with each outcome at once, in a thread.
    """
    by_file = [list(group) for _, group in groupby(sorted(mutants, key=attrgetter("file")), key=attrgetter("file"))]
    halves = [half for group in by_file for half in (group[::2], group[1::2]) if half]
    with tempfile.TemporaryDirectory(prefix="deepgrid-mutants-") as folder:
        first = _copied(CONTRACTS, Path(folder) / "0" / "contracts")
        _deploy(first)
        if unchanged_too and (failed := _failures(first)):
            raise Unfit(f"without any mutant these fail already: {', '.join(failed)}")
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(1, WORKERS):
            shutil.copytree(first.parent, Path(folder) / str(number), symlinks=True)
            copies.put(Path(folder) / str(number) / "contracts")
        copies.put(first)

        def plant_all(group: list[Mutant]) -> list[Outcome]:
            copy = copies.get()
            try:
                outcomes = []
                for mutant in group:
                    outcomes.append(outcome := _planted(copy, mutant))
                    on_outcome(outcome)
                return outcomes
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(WORKERS) as pool:
            found = {outcome.mutant: outcome for group in pool.map(plant_all, halves) for outcome in group}
    return [found[mutant] for mutant in mutants]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return one line per mutant: the mistake, its file, and the tests that caught it."""
    return "\n".join([HEADER, *(_line(outcome) for outcome in outcomes)])


def _line(outcome: Outcome) -> str:
    caught = outcome.caught_by[0] if outcome.caught_by else "NOTHING"
    more = f" and {len(outcome.caught_by) - 1} more" if len(outcome.caught_by) > 1 else ""
    return f"{outcome.mutant.why:72}  {outcome.mutant.file:24}  {caught}{more}"


def _copied(contracts: Path, to: Path) -> Path:
    """Copy the contracts, with the build of `./run test` if there is one, and the bytecode that is deployed."""
    ignored = shutil.ignore_patterns("node_modules", "out", "cache", "deployed", "__pycache__")
    shutil.copytree(contracts, to, ignore=ignored)
    (to / "node_modules").symlink_to(contracts / "node_modules")
    for build in BUILD:
        if (contracts / build).exists():
            shutil.copytree(contracts / build, to / build)
    shutil.copytree(COMPILED, to.parent / "deepgrid" / "chain" / "compiled")
    return to


def _planted(copy: Path, mutant: Mutant) -> Outcome:
    source = copy / "src" / mutant.file
    try:
        with _changed(source, mutant.old, mutant.new):
            _deploy(copy)
        failed = _failures(copy)
        if not failed:
            with _changed(source, mutant.old, mutant.new):
                failed = _failures(copy)
    except Unfit as error:
        raise Unfit(f"mutant '{mutant.why}': {error}") from None
    return Outcome(mutant, tuple(failed))


def _deploy(copy: Path) -> None:
    """Compile the contracts alone, and let the tests of this copy deploy that bytecode."""
    places = {"FOUNDRY_OUT": "out/mutant", "FOUNDRY_CACHE_PATH": "cache/mutant"}
    done = _forge(copy, "build", *(f"src/{name}.sol" for name in DEPLOYED), **places)
    if done.returncode != 0:
        raise Unfit(f"forge build failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for name in DEPLOYED:
        built = json.loads((copy / "out/mutant" / f"{name}.sol" / f"{name}.json").read_text())
        exported = copy.parent / "deepgrid/chain/compiled" / f"{name}.json"
        changed = json.loads(exported.read_text()) | {"bytecode": built["bytecode"]["object"]}
        exported.write_text(json.dumps(changed))


@contextmanager
def _changed(source: Path, old: str, new: str) -> Iterator[None]:
    before = source.read_text()
    source.write_text(before.replace(old, new))
    try:
        yield
    finally:
        source.write_text(before)


def _failures(copy: Path) -> list[str]:
    """Return the tests that fail in this copy; unit tests come before the history."""
    return _failed_tests(copy, "--no-match-contract", f"{NEVER}|{SLOW}") or _failed_tests(
        copy, "--match-contract", SLOW, "--no-match-contract", NEVER
    )


def _failed_tests(copy: Path, *chosen: str) -> list[str]:
    limits = ["--threads", "1", "--fail-fast", "--fuzz-seed", "1", "--no-match-test", "invariant_"]
    done = _forge(copy, "test", "--json", *limits, *SKIPPED, *chosen, DEPLOYED="true")
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return [f"the limit of {LIMIT_CPU_S} s"]
    try:
        suites = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise Unfit(f"forge test did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}") from None
    failed = [
        f"{suite.rpartition(':')[2]}.{test.partition('(')[0]}"
        for suite, results in suites.items()
        for test, result in results["test_results"].items()
        if result["status"] == "Failure"
    ]
    return sorted(failed, key=lambda test: (test.startswith("Invariants"), test))


def _forge(copy: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["prlimit", f"--cpu={LIMIT_CPU_S}", "nice", str(copy / "node_modules/.bin/forge"), *arguments]
    settings = os.environ | {"FOUNDRY_PROFILE": "unoptimised", "FOUNDRY_FUZZ_RUNS": "32"} | environment
    return subprocess.run(command, cwd=copy, env=settings, capture_output=True, text=True, check=False)


def main(words: Sequence[str]) -> int:
    """Print a line for each mutant as soon as its tests ran. Returns 1 if a mutant was not caught."""
    wanted = " ".join(words)
    print(HEADER)
    chosen = [mutant for mutant in read_mutants() if wanted in mutant.why]
    outcomes = trial(chosen, on_outcome=lambda outcome: print(_line(outcome), flush=True))
    return 0 if all(outcome.caught_by for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
