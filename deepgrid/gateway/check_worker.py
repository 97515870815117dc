"""A process that checks workflows for `POST /v1/check`. Its messages are JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from deepgrid import modules
from deepgrid.errors import InputError, ServiceError
from deepgrid.sbatch import StoragePaths, render
from deepgrid.services.script_check import CheckLimits, check_grammar
from deepgrid.services.worker_loop import answer_requests
from deepgrid.workflow import LoadedWorkflow, canonical, parse
from deepgrid.workflow.models.walk import steps_in

NAME = "workflow"
GRAMMAR = CheckLimits(processor_s=1, within_s=1.5)
HOSTED_MODULE = (
    "modules are fetched on the customer's machine, not here; submit this workflow with `dps web` or `dps submit`"
)
_LOCATED = re.compile(rf"{NAME}:(\d+):(\d+): (.*)", re.DOTALL)


def check(file: str, *, with_modules: bool) -> dict[str, Any]:
    """Check the text of a workflow file, and describe the job."""
    try:
        loaded = parse(file, NAME)
        if not with_modules and (faults := _uses(loaded)):
            return _report(faults=faults)
        if with_modules:
            loaded = modules.resolve(loaded)
        check_grammar(render(loaded.model, StoragePaths()), limits=GRAMMAR)
    except InputError as error:
        return _report(faults=[_fault(line) for line in error.message.splitlines()])
    except ServiceError:  # the grammar could not be checked in time; the services check it at the upload
        pass
    asked = loaded.model.resources
    resources = {"gpus": asked.gpus, "mem_per_cpu_mb": asked.mem_per_cpu}
    resources |= {"cpus_per_task": asked.cpus_per_task, "ntasks": asked.tasks}
    warnings = [_fault(line) for line in loaded.warnings]
    return _report(definition=canonical(loaded.model).decode(), resources=resources, warnings=warnings)


def _uses(loaded: LoadedWorkflow) -> list[dict[str, Any]]:
    """Return a fault for each step that uses a module."""
    places = [path for path, step in steps_in(loaded.model.steps, ("steps",)) if step.use is not None]
    return [_place(*loaded.document.place((*path, "use"), of_key=True), HOSTED_MODULE) for path in places]


def _fault(line: str) -> dict[str, Any]:
    found = _LOCATED.fullmatch(line)
    return _place(int(found[1]), int(found[2]), found[3]) if found else _place(1, 1, line.removeprefix(f"{NAME}: "))


def _place(line: int, column: int, text: str) -> dict[str, Any]:
    return {"line": line, "column": column, "text": text.removeprefix("warning: ")}


def _report(**found: Any) -> dict[str, Any]:
    return {"definition": None, "resources": None, "faults": [], "warnings": []} | found


def examine(message: bytes) -> bytes:
    """Return the answer to one request of `Checks`."""
    asked = json.loads(message)
    return json.dumps(check(asked["file"], with_modules=asked["modules"])).encode()


if __name__ == "__main__":
    check("resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\nsteps: []\n", with_modules=False)  # warms up
    answer_requests(examine)
