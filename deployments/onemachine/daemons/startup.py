"""Runs steps in the order of their dependencies, independent ones in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter

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
    named = {step.name: step for step in steps}
    if unknown := {need for step in steps for need in step.needs} - named.keys():
        raise ValueError(f"Steps need unknown ones: {', '.join(sorted(unknown))}")
    order = TopologicalSorter({step.name: step.needs for step in steps})
    order.prepare()
    failure: BaseException | None = None
    running: dict[Future[float], str] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(steps))) as pool:
        while running or (failure is None and order.is_active()):
            for name in order.get_ready() if failure is None else ():
                running[pool.submit(_timed, named[name])] = name
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                if (error := future.exception()) is not None:
                    failure = failure or error
                else:
                    order.done(name)
                    report(name, future.result())
    if failure is not None:
        raise failure


def _timed(step: Step) -> float:
    started = time.monotonic()
    step.do()
    return time.monotonic() - started
