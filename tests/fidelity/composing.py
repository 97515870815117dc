"""Composes workflows at random. The order of all markers in each is certain: see `reference`.

Launches are waited for at once, or say something only when their scope ends, or end with their scope. Parallel
iterations neither fail nor pass variables on.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import Any

NAMES = ("V0", "V1", "V2", "IN", "item", "index", "DEEPSQUARE_ERROR_CODE")
ONLY_HERE = ("program", "waits_for_signal")  # what a workflow file does not have


@dataclass(frozen=True)
class Place:
    """What steps may do here: fail, pass variables on, begin loops of these kinds, go deeper."""

    fails: bool = True
    writes: bool = True
    loops: tuple[str, ...] = ("items", "range")
    depth: int = 3


class Composer:
    """Composes one workflow from a seed, with containers or without."""

    def __init__(self, seed: int, *, containers: bool = True) -> None:
        self._random = random.Random(str(seed))
        self._prefix, self._number, self._held = f"m{seed}", 0, 0
        self._containers = containers

    def workflow(self) -> list[dict[str, Any]]:
        """Return the steps of a workflow."""
        return self._scope(Place(), 5)

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _scope(self, place: Place, most: int) -> list[dict[str, Any]]:
        steps = self._steps(place, most)
        if place.depth > 0 and self._chance(0.15):
            inner = replace(place, depth=place.depth - 1, writes=False)
            steps.append({"launch": {"signalOnParentStepExit": 0, "steps": self._steps(inner, 1)}})
        return steps

    def _steps(self, place: Place, most: int) -> list[dict[str, Any]]:
        return [step for _ in range(self._random.randint(1, most)) for step in self._some(place)]

    def _some(self, place: Place) -> list[dict[str, Any]]:
        kinds = {self._plain: 8.0}
        if place.depth > 0:
            kinds |= {self._group: 2, self._awaited: 1, self._held_launch: 1 if self._held < 2 else 0, self._module: 1}
            kinds[self._loop] = 2 if place.loops else 0
        return self._random.choices(list(kinds), list(kinds.values()))[0](place)

    def _plain(self, place: Place) -> list[dict[str, Any]]:
        return [self._guard({"run": self._run(place)}, place)]

    def _run(self, place: Place, *, silent: str = "") -> dict[str, Any]:
        mark, shown = f"{self._prefix}.{self._next()}", [*self._random.sample(NAMES, 3), "item", "index"]
        contained = self._chance(0.1) and self._containers
        passed_on = {}
        if place.writes and not contained and self._chance(0.3):
            passed_on[self._random.choice(NAMES[:3])] = f"x{self._random.randint(1, 3)}"
        status = self._random.choice((1, 2, 7, 126, 200, 255)) if place.fails and self._chance(0.12) else 0
        text = " ".join([mark, *(f"{name}=${name}" for name in shown)])
        lines = [silent] * bool(silent) + [f'echo "{text}"']
        lines += [f'echo {key}={value} >>"$DEEPSQUARE_ENV"' for key, value in passed_on.items()]
        run: dict[str, Any] = {
            "command": "\n".join([*lines, f"exit {status}"]),
            "program": (mark, shown, passed_on, status),
        }
        if contained:
            run["container"] = {"image": "some/image:1"}
        if self._chance(0.2):
            run["env"] = [{"key": self._random.choice(NAMES[:4]), "value": "own"}]
        if self._chance(0.2):
            run["shell"] = "/bin/bash"
        return run

    def _guard(self, step: dict[str, Any], place: Place, *, condition: bool = True) -> dict[str, Any]:
        """Give a step perhaps a condition, `catch` and `finally`. What a `catch` handles may fail anywhere."""
        if condition and self._chance(0.15):
            value = self._random.choice(("x1", "x2", "7", "own"))
            step["if"] = f"${self._random.choice(NAMES)} {self._random.choice(('==', '!='))} {value}"
        inner = replace(place, depth=min(place.depth, 1) - 1)
        if self._chance(0.2):
            step["catch"] = self._scope(inner, 1)
            if "run" in step and self._chance(0.7):
                step["run"] = self._run(replace(place, fails=True))
        if self._chance(0.2):
            step["finally"] = self._scope(inner, 1)
        return step

    def _group(self, place: Place) -> list[dict[str, Any]]:
        return [self._guard({"steps": self._steps(replace(place, depth=place.depth - 1), 3)}, place)]

    def _loop(self, place: Place) -> list[dict[str, Any]]:
        parallel, kind = self._chance(0.4), self._random.choice(place.loops)
        inner = replace(place, depth=place.depth - 1, loops=tuple(one for one in place.loops if one != kind))
        if parallel:
            inner = replace(inner, fails=False, writes=False)
        steps = self._scope(inner, 2) if parallel else self._steps(inner, 2)
        loop: dict[str, Any] = {"parallel": parallel, "steps": steps}
        if kind == "items":
            loop["items"] = [f"i{self._next()}" for _ in range(self._random.randint(1, 3))]
        else:
            begin, by = self._next(), self._random.choice((1, 2, -1))
            loop["range"] = {"begin": begin, "end": begin + by * self._random.randint(0, 2), "increment": by}
        return [self._guard({"for": loop}, place)]

    def _awaited(self, place: Place) -> list[dict[str, Any]]:
        name = f"h{self._next()}"
        inner = replace(place, depth=place.depth - 1)
        launch = {"launch": {"handleName": name, "steps": self._scope(inner, 2)}}
        return [self._guard(launch, place, condition=False), {"dependsOn": [name], "run": self._run(place)}]

    def _held_launch(self, place: Place) -> list[dict[str, Any]]:
        """Return a launch that ends by its signal, and says so in its `finally`."""
        self._held += 1
        file = f"up-{self._prefix}-{self._next()}-$item-$index"
        still = replace(place, fails=False, writes=False, depth=0)
        launch = {
            "launch": {
                "signalOnParentStepExit": self._random.choice((15, 15, 2, 1, 10)),
                "waits_for_signal": True,
                "steps": [{"run": {"command": f'touch "{file}"; exec sleep 1000'}}],
            },
            "finally": [{"run": self._run(still)}],
        }
        begun = f'until [ -e "{file}" ]; do sleep 0.05; done'
        return [launch, {"run": self._run(replace(still, fails=place.fails), silent=begun)}]

    def _module(self, place: Place) -> list[dict[str, Any]]:
        module: dict[str, Any] = {"source": "example.org/a/b", "outputs": list(NAMES[:2])}
        module["inputs"] = [{"key": "IN", "value": f"in{self._next()}"}]
        if place.writes and self._chance(0.5):
            module["exportEnvAs"] = f"P{self._next()}"
        module["steps"] = self._scope(replace(place, depth=place.depth - 1), 2)
        return [self._guard({"module": module}, place)]


def written(steps: list[dict[str, Any]]) -> str:
    """Return the steps as a workflow file has them."""
    return json.dumps(_plain(steps))


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _plain(value) for name, value in part.items() if name not in ONLY_HERE}
    return [_plain(one) for one in part] if isinstance(part, list) else part
