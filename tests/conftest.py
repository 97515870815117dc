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
LONG_TEST = re.compile(rb"mark\.long")
NO_QUICK_TEST = re.compile(rb"^pytestmark = .*mark\.(long|deep)", re.MULTILINE)
SECOND_GRID = "[second grid"
# With more workers than this, these modules run beside the rest of their folder, on a second grid or Slurm cluster.
WORKERS_FOR_FOLDERS = 4
SECOND_HALVES = {
    "grid": ("test_benchmark", "test_new_provider", "test_reconciliation", "test_run_triggers"),
    "attacks": (
        "test_blocked_supervisor", "test_cmdline", "test_flood", "test_leftovers", "test_output", "test_slurm_claims",
        "test_storage", "test_strangers_texts",
    ),
    "outages": ("test_expiry", "test_notifications"),
    "slurm": ("test_crashes", "test_time_limit"),
}  # fmt: skip
LONGEST_FIRST = (
    "grid", "chaos", "attacks", "outages", "scaled", "web", "contracts", "slurm", "cli", "sbatch", "onemachine",
    "client", "services", "tui", "deployments", "provider", "chain", "docs",
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
def pytest_collection() -> Iterator[object]:
    """Do not look for garbage among the modules that a collection imports, which would take half of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Folders(LoadScopeScheduling):
    """Runs folders in parallel. Tests of one folder share a grid or cluster; some folders start a second one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid, self.numnodes)


def scope_of(nodeid: str, workers: int) -> str:
    """Return the name of a test's group, whose tests run one after another. Many workers halve the longest groups."""
    folder, *path = nodeid.partition("::")[0].split("/")[1:]
    halved = workers > WORKERS_FOR_FOLDERS and path and path[0].removesuffix(".py") in SECOND_HALVES.get(folder, ())
    return f"{folder}, second grid" if halved or SECOND_GRID in nodeid else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Folders:
    return Folders(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest folders, so that none of them runs alone at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        rank = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda item: rank.get(item.nodeid.split("/")[1], len(rank)))


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
