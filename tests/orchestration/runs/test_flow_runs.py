"""Required runs are started through pauses and outages, and each reason is logged once."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun

from orchestration.runs import flow_runs
from orchestration.runs.flow_runs import Paused

AWAY = httpx.ConnectError("All connection attempts failed")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Exception | FlowRun]:
    """Prefect's answers to the next attempts."""
    answers: list[Exception | FlowRun] = []

    async def start_run(deployment: str, parameters: dict[str, Any]) -> FlowRun:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(flow_runs, "start_run", start_run)
    return answers


async def test_a_pause_is_waited_out_and_logged_once(
    answers: list[Exception | FlowRun], caplog: pytest.LogCaptureFixture
) -> None:
    run = FlowRun(flow_id=uuid4())
    answers += [Paused("claim_jobs/alpha")] * 3 + [run]
    assert await flow_runs.start_eventually("claim_jobs/alpha", {}, retry_s=0) == run
    assert [record.getMessage() for record in caplog.records] == [
        "cannot start claim_jobs/alpha yet, trying again: The deployment claim_jobs/alpha is paused; "
        "resume it in Prefect's UI or with `prefect deployment schedule resume`."
    ]


async def test_each_new_reason_is_logged(answers: list[Exception | FlowRun], caplog: pytest.LogCaptureFixture) -> None:
    run = FlowRun(flow_id=uuid4())
    answers += [AWAY, AWAY, Paused("claim_jobs/alpha"), AWAY, run]
    assert await flow_runs.start_eventually("claim_jobs/alpha", {}, retry_s=0) == run
    assert len(caplog.records) == 3
