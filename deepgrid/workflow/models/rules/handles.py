"""Checks that each `dependsOn` names a launch for which the step can wait.

A step can wait for earlier launches in its own scope. Scopes are the job itself and everything that runs in a
shell of its own: a launch, a module, an iteration of a parallel loop, the body of a step with `catch` or
`finally`, and each of these two. Groups, sequential loops and conditions belong to the scope around them.
So cycles are impossible. Steps that are passed to a module are checked where the module places them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from deepgrid.workflow.models.rules.walk import steps_in
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.yaml_text.yaml_nodes import Path


def misplaced_waits(steps: Sequence[Step], path: Path) -> Iterator[tuple[Path, str]]:
    """Entries of `dependsOn` that name no possible launch, each with its fault."""
    everywhere: dict[str, Path] = {}
    for place, step in steps_in(steps, path):
        if step.launch and step.launch.handle_name:
            everywhere.setdefault(step.launch.handle_name.upper(), place)
    for place, handle, known in _waits_in_scope(steps, path):
        if handle.upper() not in known:
            yield place, _sentence(place, handle, known, everywhere.get(handle.upper()))


def _waits_in_scope(steps: Sequence[Step], path: Path) -> Iterator[tuple[Path, str, list[str]]]:
    return _waits(steps, path, [])


def _waits(steps: Sequence[Step], path: Path, known: list[str]) -> Iterator[tuple[Path, str, list[str]]]:
    """Each wait, with the handles (in capitals) that are known at its place. Each launch is added to `known`."""
    for index, step in enumerate(steps):
        place = (*path, index)
        for number, handle in enumerate(vars(step).get("depends_on", ())):  # a malformed entry must not hide launches
            yield (*place, "dependsOn", number), handle, known
        inner = [] if step.catch or step.finally_ else known
        yield from _waits(step.steps, (*place, "steps"), inner)
        if step.for_:
            yield from _waits(step.for_.steps, (*place, "for", "steps"), [] if step.for_.parallel else inner)
        if step.module:
            yield from _waits_in_scope(step.module.steps, (*place, "module", "steps"))
        if step.launch:
            yield from _waits_in_scope(step.launch.steps, (*place, "launch", "steps"))
            if step.launch.handle_name:
                known.append(step.launch.handle_name.upper())
        yield from _waits_in_scope(step.catch, (*place, "catch"))
        yield from _waits_in_scope(step.finally_, (*place, "finally"))


def _sentence(place: Path, handle: str, known: Sequence[str], launched: Path | None) -> str:
    if launched is not None and place[: len(launched)] == launched:
        return f"would wait for {handle}, of which this step is a part, forever"
    if launched is not None:
        return f"can only wait for launches before this step in the same scope; {handle} is later or in another scope"
    near = difflib.get_close_matches(handle.upper(), known, n=1)
    hint = f" (did you mean {near[0].lower()}?)" if near else ""
    return f"no step launches {handle}{hint}"
