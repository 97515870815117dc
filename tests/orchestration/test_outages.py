"""Calls wait until an outage of Prefect ends, report refusals, and log bugs with a traceback."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import httpx
import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed, Failed, Running

from orchestration.outages import is_outage, warn
from orchestration.runs import flow_runs
from orchestration.runs.flow_runs import run_ended

REQUEST = httpx.Request("GET", "http://127.0.0.1:1/api")
AWAY = httpx.ConnectError("All connection attempts failed")


def status(code: int) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError(f"HTTP {code}", request=REQUEST, response=httpx.Response(code, request=REQUEST))


@pytest.mark.parametrize("error", [AWAY, httpx.ReadTimeout("silent"), status(429), status(500), status(503)], ids=repr)
def test_silence_and_overload_are_outages(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize("error", [status(401), status(404), status(422), ValueError("no JSON")], ids=repr)
def test_an_answer_is_none(error: Exception) -> None:
    assert not is_outage(error)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Prefect's answers to the next requests for a run's state."""
    answers: list[object] = []

    class Client:
        async def __aenter__(self) -> PrefectClient:
            return cast(PrefectClient, self)

        async def __aexit__(self, *_: object) -> None: ...

        async def read_flow_run(self, _: object) -> SimpleNamespace:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(state=answer)

    monkeypatch.setattr(flow_runs, "get_client", Client)
    return answers


async def test_the_end_of_a_run_is_waited_for_through_outages(answers: list[object]) -> None:
    run = FlowRun(flow_id=uuid4())
    answers += [None, Running(), AWAY, status(503), Completed()]
    assert await run_ended(run, poll_s=0)
    answers += [AWAY, Failed()]
    assert not await run_ended(run, poll_s=0)
    answers += [ObjectNotFound(status(404))]
    assert not await run_ended(run, poll_s=0)
    assert answers == []


async def test_a_refusal_by_prefect_is_not_waited_out(answers: list[object]) -> None:
    """For example, after a login was added to the server. Nothing was logged before."""
    answers += [AWAY, status(401)]
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        await run_ended(FlowRun(flow_id=uuid4()), poll_s=0)


def test_a_bug_is_not_taken_for_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("unit")
    warn(log, "not asked", TimeoutError())
    warn(log, "not asked", AWAY)
    try:
        {}["key"]
    except KeyError as bug:
        warn(log, "not asked", bug)
    said = [(record.levelname, record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert said == [
        ("WARNING", "not asked: TimeoutError()", False),
        ("WARNING", "not asked: All connection attempts failed", False),
        ("ERROR", "not asked: unexpected error", True),
    ]
