"""A condition that lasts makes few lines: an SSH outage of under four minutes made 107 equal ones."""

from __future__ import annotations

import logging

import pytest

from deepgrid.condition_log import ConditionLog

logger = logging.getLogger("deepgrid.test")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO)
    return Clock()


def test_an_outage_is_told_at_its_start_at_growing_intervals_and_at_its_end(
    caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    condition = ConditionLog(logger, "logs are delayed", clock)
    for _ in range(110):
        condition.note("the login node does not answer")
        clock.now += 2
    condition.end()
    condition.end()
    assert caplog.messages == [
        "logs are delayed, trying again: the login node does not answer",
        "logs are delayed for 60 s, 31 attempts: the login node does not answer",
        "logs are delayed for 180 s, 91 attempts: the login node does not answer",
        "logs are delayed no longer, after 220 s and 110 attempts",
    ]
    assert [record.levelname for record in caplog.records] == [*["WARNING"] * 3, "INFO"]


def test_a_condition_that_comes_and_goes_does_not_fill_the_log(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    condition = ConditionLog(logger, "logs are delayed", clock)
    for _ in range(100):
        condition.note("a broken line")
        clock.now += 1
        condition.end()
        clock.now += 1
    assert len(caplog.messages) == 8  # in 200 s


def test_an_outage_that_comes_back_soon_is_told_when_it_lasts(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    condition = ConditionLog(logger, "logs are delayed", clock)
    condition.note("first")
    condition.end()
    caplog.clear()
    for _ in range(70):
        clock.now += 1
        condition.note("second")
    assert caplog.messages == ["logs are delayed, trying again: second"]
