"""A reference interpreter of the workflow language, after docs/reference/workflow.md. It is pure and knows no bash.

It predicts the markers of a job, its exit status, and the variables that reach each step. Commands are not shell text
but small programs: a marker, a variable to pass on, an exit status. The tree of its markers says what is in order
(`Seq`) and what runs at the same time (`Par`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Node = Mapping[str, Any]  # a step as a workflow file writes it; `run.program` is the program of its command


@dataclass
class Seq:
    """Markers in order."""

    parts: list[str | Seq | Par] = field(default_factory=list)

    def texts(self) -> list[str]:
        return [text for part in self.parts for text in ([part] if isinstance(part, str) else part.texts())]


@dataclass
class Par:
    """Branches that run at the same time."""

    branches: list[Seq]

    def texts(self) -> list[str]:
        return [text for branch in self.branches for text in branch.texts()]


def difference(found: Sequence[str], tree: Seq) -> str:
    """Return where the markers of a job differ from those expected; empty if they do not."""
    at = 0
    for part in tree.parts:
        size = 1 if isinstance(part, str) else len(part.texts())
        given, at = list(found[at : at + size]), at + size
        if isinstance(part, str):
            if given != [part]:
                return f"marker {at}: {given}, not {part!r}"
        elif isinstance(part, Seq):
            if inner := difference(given, part):
                return inner
        elif inner := _in_no_order(given, part):
            return inner
    return f"too many markers: {found[at:]}" if found[at:] else ""


def _in_no_order(given: list[str], part: Par) -> str:
    if Counter(given) != Counter(part.texts()):
        return f"{sorted(given)}, not {sorted(part.texts())} at the same time"
    for branch in part.branches:
        own = set(branch.texts())
        if inner := difference([text for text in given if text in own], branch):
            return inner
    return ""


class Failed(Exception):
    """A scope fails with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Scope:
    """Variables of a scope, and its launches that end with it."""

    files: list[dict[str, str]]  # of DEEPSQUARE_ENV: the callers' files, and at the end the one to which steps write
    layers: list[dict[str, str]]  # inputs of modules, and variables of loops, in rising priority
    error_code: str = ""
    handles: dict[str, int] = field(default_factory=dict)
    ending: list[Callable[[], Seq]] = field(default_factory=list)  # launches that get their signal at the end
    late: list[tuple[Seq, int]] = field(default_factory=list)  # launches without a signal, with their status

    def inner(self, *, error_code: str | None = None) -> Scope:
        """Return a scope inside of this one."""
        return Scope(list(self.files), list(self.layers), self.error_code if error_code is None else error_code)


class Interpreter:
    """Runs one job. `job_env` are the variables of the job."""

    def __init__(self, job_env: Mapping[str, str]) -> None:
        self._job_env = dict(job_env)

    def run(self, steps: Sequence[Node]) -> tuple[int, Seq]:
        """Return the job's exit status and markers."""
        said = Seq()
        return self._scope_of(Scope([{}], []), steps, said), said

    def _scope(self, scope: Scope, run: Callable[[], None], said: Seq) -> int:
        """Run what belongs to a scope, then end it, and return its status."""
        status = 0
        try:
            run()
            if scope.late:
                said.parts.append(Par([seq for seq, _ in scope.late]))
                status = next((late for _, late in scope.late if late), 0)
        except Failed as failed:
            status = failed.status
        if scope.ending:
            said.parts.append(Par([end() for end in scope.ending]))
        return status

    def _scope_of(self, scope: Scope, steps: Sequence[Node], said: Seq) -> int:
        return self._scope(scope, lambda: self._steps(scope, steps, said), said)

    def _steps(self, scope: Scope, steps: Iterable[Node], said: Seq) -> None:
        for step in steps:
            self._step(scope, step, said)

    def _step(self, scope: Scope, step: Node, said: Seq) -> None:
        for handle in step.get("dependsOn", ()):
            if status := scope.handles[handle.upper()]:
                raise Failed(status)
        if "if" in step and not self._holds(scope, step["if"]):
            return
        if "launch" in step:
            self._launch(scope, step, said)
        elif "catch" in step or "finally" in step:
            if status := self._guarded(scope, step, said, lambda inner: self._body(inner, step, said)):
                raise Failed(status)
        else:
            self._body(scope, step, said)

    def _guarded(self, scope: Scope, step: Node, said: Seq, body: Callable[[Scope], None]) -> int:
        """Run a body with its `catch` and `finally`, and return the status."""
        inner = scope.inner()
        status = self._scope(inner, lambda: body(inner), said)
        code = str(status)
        if status and "catch" in step:
            status = self._scope_of(scope.inner(error_code=code), step["catch"], said)
        if "finally" in step:
            status = self._scope_of(scope.inner(error_code=code), step["finally"], said) or status
        return status

    def _launch(self, scope: Scope, step: Node, said: Seq) -> None:
        launch = step["launch"]
        signal = launch.get("signalOnParentStepExit", 15)
        if launch.get("waits_for_signal"):  # its `finally` says the status of the signal
            scope.ending.append(partial(self._end, scope.inner(error_code=str(128 + signal)), step["finally"]))
            return
        own = Seq()
        if "catch" in step or "finally" in step:
            status = self._guarded(scope, step, own, lambda inner: self._steps(inner, launch["steps"], own))
        else:
            status = self._scope_of(scope.inner(), launch["steps"], own)
        if signal == 0:
            scope.late.append((own, status))
        else:  # the generator waits for it in the next step
            said.parts.append(own)
            scope.handles[launch["handleName"].upper()] = status

    def _end(self, scope: Scope, steps: Sequence[Node]) -> Seq:
        said = Seq()
        self._scope_of(scope, steps, said)
        return said

    def _body(self, scope: Scope, step: Node, said: Seq) -> None:
        if "run" in step:
            self._run(scope, step["run"], said)
        elif "for" in step:
            self._loop(scope, step["for"], said)
        elif "module" in step:
            self._module(scope, step["module"], said)
        else:
            self._steps(scope, step.get("steps", ()), said)

    def _loop(self, scope: Scope, loop: Node, said: Seq) -> None:
        if "range" in loop:
            begin, end, by = loop["range"]["begin"], loop["range"]["end"], loop["range"].get("increment") or 1
            rounds = [{"index": str(number)} for number in range(begin, end + (1 if by > 0 else -1), by)]
        else:
            rounds = [{"item": item} for item in loop["items"]]
        branches = []
        for values in rounds:
            if loop["parallel"]:
                inner, own = scope.inner(), Seq()
                inner.layers.append(values)
                if status := self._scope_of(inner, loop["steps"], own):
                    raise AssertionError(f"a parallel loop with a failure ({status}) has no order")
                branches.append(own)
            else:
                scope.layers.append(values)
                try:
                    self._steps(scope, loop["steps"], said)
                finally:
                    scope.layers.pop()
        if branches:
            said.parts.append(Par(branches))

    def _module(self, scope: Scope, module: Node, said: Seq) -> None:
        inner = scope.inner()
        inner.layers.append({one["key"]: one["value"] for one in module["inputs"]})
        if module.get("exportEnvAs"):
            inner.files.append({})
        if status := self._scope_of(inner, module["steps"], said):
            raise Failed(status)
        if prefix := module.get("exportEnvAs"):
            given = {key: value for key, value in inner.files[-1].items() if key in module["outputs"]}
            scope.files[-1].update({f"{prefix}_{key}": value for key, value in given.items()})

    def _variables(self, scope: Scope) -> dict[str, str]:
        found = dict(self._job_env)
        for layer in (*scope.files, *scope.layers):
            found |= layer
        return found | ({"DEEPSQUARE_ERROR_CODE": scope.error_code} if scope.error_code else {})

    def _holds(self, scope: Scope, condition: str) -> bool:
        name, operator, value = condition.split(" ")
        has = self._variables(scope).get(name.removeprefix("$"), "")
        return (has == value) if operator == "==" else has != value

    def _run(self, scope: Scope, run: Node, said: Seq) -> None:
        variables = self._variables(scope) | {one["key"]: one["value"] for one in run.get("env", ())}
        mark, shown, passed_on, status = run["program"]
        said.parts.append(" ".join([mark, *(f"{name}={variables.get(name, '')}" for name in shown)]))
        scope.files[-1].update(passed_on)
        if status:
            raise Failed(status)
