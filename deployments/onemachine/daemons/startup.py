"""Runs steps in the order of their dependencies, independent ones in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Step:
    """A step that runs when the steps in `needs` are done. It must be idempotent."""

    name: str
    do: Callable[[], None]
    needs: tuple[str, ...] = ()


def run_steps(steps: Sequence[Step], report: Report = lambda _name, _seconds: None) -> None:
    """Run all steps. `report` is called for each finished step, with its duration in seconds.

    After a failure no new step starts. When the running steps have ended, the first error is raised.
    Raises ValueError when `needs` name an unknown step or form a cycle.
    """
    waiting = {step.name: step for step in _in_order(steps)}
    done: set[str] = set()
    failure: BaseException | None = None
    running: dict[Future[float], str] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(steps))) as pool:
        while waiting or running:
            for step in [step for step in waiting.values() if done.issuperset(step.needs)]:
                running[pool.submit(_timed, step)] = waiting.pop(step.name).name
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                if (error := future.exception()) is not None:
                    failure = failure or error
                    waiting.clear()
                else:
                    done.add(name)
                    report(name, future.result())
    if failure is not None:
        raise failure


def _timed(step: Step) -> float:
    started = time.monotonic()
    step.do()
    return time.monotonic() - started


def _in_order(steps: Sequence[Step]) -> list[Step]:
    """The steps in topological order."""
    left = {step.name: step for step in steps}
    ordered: dict[str, Step] = {}
    while left:
        possible = [step for step in left.values() if ordered.keys() >= set(step.needs)]
        if not possible:
            raise ValueError(f"These steps need unknown steps or each other: {', '.join(left)}")
        for step in possible:
            ordered[step.name] = left.pop(step.name)
    return list(ordered.values())
