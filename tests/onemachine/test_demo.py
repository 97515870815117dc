"""`./run demo` stops the grid at its end, if it started it. Tests with a whole grid show the rest."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deployments.onemachine import __main__ as command
from deployments.onemachine.daemons.processes import Report
from deployments.onemachine.grid import LocalGrid


class Stub(LocalGrid):
    """A grid without processes, which counts how often it is started and stopped."""

    def __init__(self, state: Path, *, was_up: bool) -> None:
        super().__init__(state)
        self.was_up, self.ups, self.downs = was_up, 0, 0

    def up(self, report: Report) -> bool:
        self.ups += 1
        return not self.was_up

    def is_up(self) -> bool:
        return self.was_up

    def down(self) -> list[str]:
        self.downs += 1
        return []


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handlers of the tests' process stay."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@pytest.mark.parametrize(("was_up", "downs"), [(False, 1), (True, 0)])
def test_only_a_grid_that_it_started_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_up: bool, downs: int
) -> None:
    monkeypatch.setattr(command, "_show_job", lambda _: 3)
    grid = Stub(tmp_path, was_up=was_up)
    assert command.demo(grid, end_at_once=True) == 3
    assert (grid.ups, grid.downs) == (1, downs)


def test_a_grid_whose_job_cannot_be_shown_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: LocalGrid) -> int:
        raise ConfigurationError("The job cannot be shown.")

    monkeypatch.setattr(command, "_show_job", fail)
    grid = Stub(tmp_path, was_up=False)
    with pytest.raises(ConfigurationError):
        command.demo(grid, end_at_once=True)
    assert grid.downs == 1
