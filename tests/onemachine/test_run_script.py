"""`./run` as a user sees it, in its cheap cases: help, mistakes, unusable homes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.onemachine.support import run


@pytest.mark.parametrize("args", [(), ("help",), ("--help",)])
def test_help_lists_every_command(args: tuple[str, ...]) -> None:
    done = run(*args)
    assert done.returncode == 0
    for command in ("setup", "demo", "up", "down", "status", "test", "lint", "bench", "docs"):
        assert f"\n  {command} " in done.stdout


def test_an_unknown_command_has_exit_status_2_and_names_it() -> None:
    done = run("fly")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith("run: there is no command 'fly'\n")


@pytest.mark.parametrize("home", ["", "/nonexistent", "/proc"])
def test_status_of_a_grid_that_was_never_up(home: str, tmp_path: Path) -> None:
    done = run("status", HOME=home, DEEPGRID_STATE=str(tmp_path / "state"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "The grid is not up.\n", "")


def test_down_without_a_grid_is_no_mistake(tmp_path: Path) -> None:
    done = run("down", HOME=str(tmp_path), DEEPGRID_STATE=str(tmp_path / "state"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing runs.\n", "")


def test_an_unknown_bench_has_exit_status_2() -> None:
    done = run("bench", "nothing", HOME=os.environ.get("HOME", "/"))
    assert done.returncode == 2
    assert "there is no bench 'nothing'" in done.stderr


def test_test_hands_its_arguments_to_pytest() -> None:
    done = run("test", "tests/onemachine/daemons/test_startup.py", "-k", "each_step", HOME=os.environ.get("HOME", "/"))
    assert done.returncode == 0
    assert "1 passed" in done.stdout
