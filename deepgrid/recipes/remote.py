"""Calls a pure Python function once per item, each call a job of the grid. Experimental.

The function and its arguments travel in the job's definition, pickled by cloudpickle. So only the cluster that runs the
job can read them. Results come back in the job's output, as JSON, NumPy arrays or Arrow tables. They are never
unpickled.

    from deepgrid import Grid
    from deepgrid.recipes import remote

    def square(x: int) -> int:
        return x * x

    with Grid() as grid:
        for call in remote.map(grid, square, range(10), credits=100, at_once=5):
            print(call.item, call.value())
"""

from __future__ import annotations

import base64
import inspect
import secrets
import sys
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from deepgrid.client.job_values import Credits
from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.client.sync.classes import Grid, Job, JobSet
from deepgrid.errors import InputError
from deepgrid.extras import needs
from deepgrid.lifecycle.states import JobStatus
from deepgrid.recipes.results import RemoteError, result_in

MOST_CALL_BYTES = 96 * 1024  # a longer variable does not fit in the environment of a process

__all__ = ["Call", "RemoteError", "Resources", "map"]


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one call.

    Attributes:
        cpus: CPUs.
        memory_mb: Memory in MB.
        gpus: GPUs.
    """

    cpus: int = 1
    memory_mb: int = 1000
    gpus: int = 0

    def __post_init__(self) -> None:
        """Raise InputError for a figure that is no whole number, or too small."""
        for name, least in (("cpus", 1), ("memory_mb", 1), ("gpus", 0)):
            value = getattr(self, name)
            if not isinstance(value, SupportsIndex) or isinstance(value, bool) or index(value) < least:
                raise InputError(f"{name} of Resources is {value!r}; it must be a whole number from {least} on.")
            object.__setattr__(self, name, index(value))


@dataclass(frozen=True)
class Call:
    """One call: its item and its job.

    Attributes:
        item: The argument of the call.
        job: The job that made it, or why it was not submitted.
    """

    item: Any
    job: Job | Unsubmitted
    _token: str = field(repr=False)

    def value(self) -> Any:
        """Return the result of the call.

        Returns:
            A JSON value, a NumPy array, a dict of arrays, or a PyArrow table.

        Raises:
            RemoteError: The function raised an exception, or returned nothing that can be sent.
            JobError: The job did not get as far as the function.
        """
        if not isinstance(self.job, Job):
            raise self.job.error
        try:
            return result_in((line.text for line in self.job.logs(follow=True)), self._token)
        except RemoteError as error:
            if not error.kind and self.job.status is not JobStatus.FINISHED:
                self.job.check()
            raise


def map(
    grid: Grid,
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    credits: Credits,
    at_once: int = 10,
    image: str | Mapping[str, Any] | None = None,
    resources: Resources = Resources(),
    python: str = "python3",
    name: str | None = None,
) -> Iterator[Call]:
    """Call a function once per item. Each call is a separate job. It returns when the first jobs can be requested.

    Args:
        grid: The grid.
        function: A function of one argument, without side effects. Modules that it imports must exist on the node.
        items: The arguments.
        credits: Credits to lock for each call.
        at_once: Number of calls at the same time.
        image: Container image with the same minor version of Python as here, or the fields of a step's container, such
            as `{"image": "python:3.11", "apptainer": True}`. None means the node's own Python.
        resources: Resources of each call.
        python: The Python in the image, or on the node.
        name: Name of the jobs. The default is the function's name.

    Returns:
        The calls, in the order of the items, each as soon as it is over. A call that failed is a value too: its
        `value()` raises.

    Raises:
        InputError: The function and its argument are too large, or cannot be pickled. Nothing was locked.
        GridError: As `Grid.map` raises; while iterating, no more jobs can be requested.
    """
    listed, token = list(items), secrets.token_hex(16)
    sets = [{"REMOTE_CALL": pickle_call(function, item)} for item in listed]
    title = name if name is not None else getattr(function, "__name__", "remote")
    jobs = grid.map(workflow(token, image, resources, python), sets, credits=credits, at_once=at_once, name=title)
    return _calls(listed, [one["REMOTE_CALL"] for one in sets], jobs, token)


def _calls(items: Sequence[Any], texts: Sequence[str], jobs: JobSet, token: str) -> Iterator[Call]:
    """Yield the calls in order, each as soon as its job is over. Equal calls are interchangeable."""
    over: defaultdict[object, deque[Job | Unsubmitted]] = defaultdict(deque)
    ends = jobs.as_completed()
    for item, text in zip(items, texts, strict=True):
        while not over[text]:
            job = next(ends)
            assert isinstance(job.parameters, Mapping)
            over[job.parameters["REMOTE_CALL"]].append(job)
        yield Call(item, over[text].popleft(), token)


def pickle_call(function: Callable[[Any], Any], item: Any) -> str:
    """Return a call as text for a variable of a job. Raises InputError."""
    try:
        content = zlib.compress(_cloudpickle().dumps((function, (item,))), 9)
    except Exception as error:  # pickling runs code of any class
        raise InputError(f"The function or its argument cannot be pickled: {type(error).__name__}.") from None
    if len(content) > MOST_CALL_BYTES * 3 // 4:
        raise InputError(
            f"The function and its argument have {len(content)} bytes when pickled; at most"
            f" {MOST_CALL_BYTES * 3 // 4} fit in a job.",
            next_step="Pass a name of the data, and read it inside of the function.",
        )
    return base64.b64encode(content).decode()


def workflow(token: str, image: str | Mapping[str, Any] | None, resources: Resources, python: str) -> dict[str, Any]:
    """Return the workflow of all calls of one `map`. The call itself is the variable REMOTE_CALL."""
    module = zlib.compress(inspect.getsource(_cloudpickle().cloudpickle).encode(), 9)
    variables = {
        "REMOTE_TOKEN": token,
        "REMOTE_PYTHON": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "REMOTE_CLOUDPICKLE": base64.b64encode(module).decode(),
    }
    return calling_workflow(variables, image, resources, python)


def calling_workflow(
    variables: Mapping[str, str], image: str | Mapping[str, Any] | None, resources: Resources, python: str
) -> dict[str, Any]:
    """Return a workflow of one step, which runs the program for calls on a node with these variables."""
    program = Path(__file__).with_name("on_node.py").read_text()
    run: dict[str, Any] = {"command": f'exec {python} -c "$REMOTE_PROGRAM"'}
    if image is not None:
        run["container"] = {"image": image} if isinstance(image, str) else dict(image)
    if resources.gpus:
        run["resources"] = {"gpusPerTask": resources.gpus}
    cpus, memory_mb = resources.cpus, -(-resources.memory_mb // resources.cpus)
    return {
        "enableLogging": True,
        "resources": {"tasks": 1, "cpusPerTask": cpus, "memPerCpu": memory_mb, "gpus": resources.gpus},
        "env": [{"key": key, "value": value} for key, value in {**variables, "REMOTE_PROGRAM": program}.items()],
        "steps": [{"name": "call", "run": run}],
    }


def _cloudpickle() -> Any:
    with needs("remote"):
        import cloudpickle
        import cloudpickle.cloudpickle
    return cloudpickle
