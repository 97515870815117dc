"""The tests of this folder on other versions of Slurm, which `tools/with-slurm` lays over the machine's own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
HERE = "tests/slurm"
# Submission, cancellation, verdicts, refused starts, ends, nodes.
SELECTION = [f"{HERE}/test_{name}.py" for name in ("cluster", "drained", "end_states")]
# From 26.05 on, the account of a job may suspend it (see versions.py).
MAY_SUSPEND = f"{HERE}/test_end_states.py::test_the_jobs_account_cannot_suspend_its_job"
DIFFERENT = {"sid": [f"--deselect={MAY_SUSPEND}"], "trixie": []}
WITHIN_S = 3600.0
NEWEST = "sid"


def run_on(suite: str, *arguments: str) -> str:
    """Run tests of this folder on the Slurm of a Debian suite. Returns the last line of the output."""
    command = [
        REPOSITORY / "tools" / "with-slurm",
        suite,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += [*arguments, *DIFFERENT[suite]]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    return done.stdout.strip().splitlines()[-1]


def version_of(suite: str, conf: Path) -> str:
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\n")
    command: Sequence[str | Path] = [REPOSITORY / "tools" / "with-slurm", suite, "env", f"SLURM_CONF={conf}"]
    done = subprocess.run([*command, "sbatch", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip().split()[-1]


@pytest.mark.long
@pytest.mark.situation(
    "versions", "the cluster has the newest Slurm of Debian (26.05)",
    "submission, cancellation, refused starts, ends and nodes are as on 22.05",
)  # fmt: skip
def test_the_selection_passes_on_the_newest_version(tmp_path: Path) -> None:
    assert int(version_of(NEWEST, tmp_path / "slurm.conf").split(".")[0]) >= 26
    said = run_on(NEWEST, *SELECTION, "-m", "not deep", "-k", "not suspend")
    found = re.search(r"(\d+) passed", said)
    assert found and int(found[1]) >= 25, said


@pytest.mark.deep
@pytest.mark.parametrize("suite", ["trixie", NEWEST])
@pytest.mark.situation(
    "versions", "the cluster has Slurm 24.11 (Debian 13) or 26.05 (Debian sid)", "all tests of Slurm pass as on 22.05",
)  # fmt: skip
def test_all_tests_pass_on_another_version(suite: str) -> None:
    said = run_on(suite, HERE, "-m", "not deep", f"--ignore={HERE}/test_other_versions.py")
    assert "skipped" not in said, said
