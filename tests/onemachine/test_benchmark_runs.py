"""`./run up` runs a deployment and reports its end, for any answer of Prefect."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.errors import ServiceError
from deployments.onemachine import benchmark_runs
from deployments.onemachine.benchmark_runs import MeasuringTimeouts, measure, run_to_end
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.grid import LocalGrid

DEPLOYMENT = "benchmark_cluster/alpha"
AT_ONCE = MeasuringTimeouts(poll_s=0)

NOWHERE = PrefectServer(Path("/nonexistent"), 4200)


def answering(monkeypatch: pytest.MonkeyPatch, *states: object) -> list[str]:
    """Answer as Prefect's API: a deployment, a run, then the run's states in turn."""
    asked: list[str] = []
    left = list(states)

    def ask(_prefect: PrefectServer, _method: str, path: str, _question: object = None) -> object:
        asked.append(path)
        if path.startswith("/api/flow_runs/"):
            state = left.pop(0) if len(left) > 1 else left[0]
            return state and {"state": {"type": state, "message": None}}
        return {"id": "one"}

    monkeypatch.setattr(PrefectServer, "ask", ask)
    return asked


def test_a_run_is_awaited_through_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, "SCHEDULED", None, "RUNNING", "COMPLETED")
    assert run_to_end(NOWHERE, DEPLOYMENT, AT_ONCE) == {"type": "COMPLETED", "message": ""}
    assert asked[:2] == [f"/api/deployments/name/{DEPLOYMENT}", "/api/deployments/one/create_flow_run"]


def test_a_run_that_goes_on_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "RUNNING")
    with pytest.raises(ServiceError, match="continues"):
        run_to_end(NOWHERE, DEPLOYMENT, MeasuringTimeouts(measured_within_s=0, poll_s=0))


def test_a_server_without_the_deployment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrefectServer, "ask", lambda *_: None)
    with pytest.raises(ServiceError, match="does not run benchmark_cluster/alpha"):
        run_to_end(NOWHERE, DEPLOYMENT)


def test_a_cluster_without_measured_labels_is_measured_until_they_are_approved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    approved: dict[str, list[dict[str, str]]] = {"alpha": [{"os": "linux"}], "beta": [{}, {}, {"compute.gflops": "3"}]}

    def read_labels(_grid: LocalGrid, name: str) -> dict[str, str]:
        return approved[name].pop(0) if len(approved[name]) > 1 else approved[name][0]

    monkeypatch.setattr(benchmark_runs, "_labels", read_labels)
    asked = answering(monkeypatch, "COMPLETED")
    said: list[str] = []
    measure(LocalGrid(tmp_path / "grid"), said.append)
    assert [path for path in asked if "/name/" in path] == ["/api/deployments/name/benchmark_cluster/beta"]
    assert [line.partition(" (")[0] for line in said] == ["  measured beta"]
    assert said[0].endswith("1 labels, compute.gflops 3")
