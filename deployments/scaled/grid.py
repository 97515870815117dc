"""The grid of `./run up --scaled`: a one-machine grid whose Prefect has several servers."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import ClassVar

from deepgrid.errors import ConfigurationError
from deployments.onemachine.grid import LocalGrid
from deployments.scaled.prefect_servers import PROCESSES, PrefectServers

ONE_SERVER = LocalGrid.prefect_processes[0][0]


class ScaledGrid(LocalGrid):
    """One grid with all its state in one folder. `<state>/scaled` exists until `down`, so that `./run` finds it."""

    prefect_processes: ClassVar[tuple[tuple[str, ...], ...]] = PROCESSES

    def _check_kind(self) -> None:
        if self.table.alive(ONE_SERVER):
            raise ConfigurationError("The grid is up with one Prefect server.", next_step="Stop it first: ./run down")
        self._kind.touch()

    def down(self) -> list[str]:
        """Stop all processes. Returns the names of the recorded ones."""
        names = super().down()
        self._kind.unlink(missing_ok=True)
        return names

    @cached_property
    def prefect(self) -> PrefectServers:
        return PrefectServers.at(self.state, self.ports.port)

    def _start_prefect(self) -> None:
        self.prefect.start(self.table, self.postgres.url("prefect"))

    @property
    def _kind(self) -> Path:
        return self.state / "scaled"
