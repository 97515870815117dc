"""Signals, ports, order and reports of all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

import deepgrid.chain.transactions.eth_accounts  # noqa: F401 # before a test imports eth_account, which is slow alone
from deployments.onemachine.daemons.ports import RANGE, USUAL
from tests.attacks import report
from tests.chaos.table import PROPERTY, Row, Table

# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP ignored, and children inherit that. Tests that
# interrupt a command must not depend on how pytest was started.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# On a busy machine, generated examples are slow, which is not a fault.
settings.register_profile("deepgrid", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("deepgrid")

QUICK_ONLY, LONG_ONLY = "not long and not deep", "long and not deep"  # what the two stages of tests ask for
LONG_TEST = re.compile(rb"mark\.long|\bbench: Bench\b|\broom: Room\b")  # the latter are long on a real cluster
NO_QUICK_TEST = re.compile(rb"^pytestmark = .*mark\.(long|deep)", re.MULTILINE)
SECOND_GRID = "[second grid"
# These modules run in parallel to the rest of their folder. The other half of the attacks needs no Slurm cluster.
HALVES = {
    "attacks": (
        "test_blocked_supervisor", "test_cmdline", "test_flood", "test_leftovers", "test_output", "test_slurm_claims",
        "test_storage", "test_strangers_texts",
    ),
}  # fmt: skip
# With more workers than this, these do too, on a second grid or Slurm cluster.
WORKERS_FOR_FOLDERS = 6
SECOND_HALVES = {
    "grid": ("test_benchmark", "test_prefect_answers", "test_reconciliation", "test_run_triggers"),
    "outages": ("test_draining", "test_expiry", "test_new_provider"),
    "slurm": ("test_crashes", "test_time_limit"),
}
LONGEST_FIRST = (
    "grid", "outages", "attacks", "slurm", "contracts", "sbatch", "web", "chaos", "services", "chain", "client", "cli",
    "scaled", "tui", "disguise", "provider", "onemachine", "deployments", "docs",
)  # fmt: skip


def pytest_configure() -> None:
    """Give each parallel worker its own range of ports."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        first, last = map(int, os.environ.get(RANGE, USUAL).split("-"))
        width = (last - first) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first += width * int(worker.removeprefix("gw"))
        os.environ[RANGE] = f"{first}-{first + width}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules without a wanted test: that takes as long as some suites."""
    if not collection_path.match("test_*.py"):
        return None
    wanted, text = config.getoption("markexpr"), collection_path.read_bytes()
    if wanted == QUICK_ONLY and NO_QUICK_TEST.search(text):
        return True
    if wanted == LONG_ONLY and not LONG_TEST.search(text):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Do not look for garbage among the modules that a collection imports, which would take half of its time."""
    _begin_elsewhere(session.config)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _begin_elsewhere(config: pytest.Config) -> None:
    """Let each worker import other folders first. Later it finds the modules that others have rewritten meanwhile."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and config.args == config.getini("testpaths"):
        tests = config.rootpath / "tests"
        places = sorted(map(str, (*tests.glob("[!_.]*/"), *tests.glob("test_*.py"))))
        first = len(places) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = places[first:] + places[:first]


class Folders(LoadScopeScheduling):
    """Runs folders in parallel. Tests of one folder share a grid or cluster; some folders start a second one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid, self.numnodes)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker its next folder before its last test. xdist does it one earlier, which may take minutes."""
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def scope_of(nodeid: str, workers: int) -> str:
    """Return the name of a test's group, whose tests run one after another. Many workers halve the longest groups."""
    folder, *path = nodeid.partition("::")[0].split("/")[1:]
    seconds = HALVES | (SECOND_HALVES if workers > WORKERS_FOR_FOLDERS else {})
    halved = path and path[0].removesuffix(".py") in seconds.get(folder, ())
    return f"{folder}, second grid" if halved or SECOND_GRID in nodeid else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Folders:
    return Folders(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest folders, so that none of them runs alone at the end. All workers need the same order."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        rank = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda item: (rank.get(item.nodeid.split("/")[1], len(rank)), item.path.parts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables of all attacks and chaos rounds, from all parallel workers."""
    if attacks := _recorded(terminalreporter, report.PROPERTY):
        terminalreporter.section("attacks")
        terminalreporter.write_line(report.table(attacks))
    if rounds := _recorded(terminalreporter, PROPERTY):
        terminalreporter.section("points x outcomes")
        terminalreporter.write_line(Table(map(Row.from_report, rounds)).text())


def _recorded(terminalreporter: pytest.TerminalReporter, wanted: str) -> list[Any]:
    """Return the values that tests recorded under this name."""
    reports = [one for outcome in ("passed", "failed") for one in terminalreporter.getreports(outcome)]
    return [value for one in reports for name, value in one.user_properties if name == wanted]
