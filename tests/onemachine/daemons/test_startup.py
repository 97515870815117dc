"""Steps run in the order of their dependencies, in parallel where possible, and stop at a failure."""

from __future__ import annotations

import threading

import pytest

from deployments.onemachine.daemons.processes import Step, run_steps


def test_each_step_comes_after_what_it_needs() -> None:
    done: list[str] = []
    steps = [
        Step("roof", lambda: done.append("roof"), ("walls",)),
        Step("walls", lambda: done.append("walls"), ("ground",)),
        Step("ground", lambda: done.append("ground")),
    ]
    reported: list[str] = []
    run_steps(steps, lambda name, seconds: reported.append(name))
    assert done == ["ground", "walls", "roof"] == reported


def test_independent_steps_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=30)
    run_steps([Step(name, lambda: meeting.wait() and None) for name in ("a", "b", "c")])
    assert not meeting.broken


def test_after_a_failure_nothing_new_begins_and_what_began_is_awaited() -> None:
    done: list[str] = []
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise OSError("no disk")

    def slow() -> None:
        assert failed.wait(30)
        done.append("slow")

    steps = [Step("bad", fail), Step("slow", slow), Step("after", lambda: done.append("after"), ("bad",)),
             Step("also", lambda: done.append("also"), ("slow",))]  # fmt: skip
    with pytest.raises(OSError, match="no disk"):
        run_steps(steps)
    assert done == ["slow"]


@pytest.mark.parametrize("needs", [("nowhere",), ("b",)])
def test_unknown_and_circular_needs_are_refused_before_anything_runs(needs: tuple[str, ...]) -> None:
    done: list[str] = []
    steps = [Step("a", lambda: done.append("a"), needs), Step("b", lambda: done.append("b"), ("a",)),
             Step("free", lambda: done.append("free"))]  # fmt: skip
    with pytest.raises(ValueError, match=r"unknown ones: nowhere|nodes are in a cycle"):
        run_steps(steps)
    assert done == []
