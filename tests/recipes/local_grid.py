"""A grid that runs jobs at once on this machine, and finds them by their keys. It outlives the flows that use it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from deepgrid.errors import GridError
from deepgrid.lifecycle.states import JobStatus


class Conflict(GridError):
    """The key was used with another workflow."""


@dataclass
class LocalJob:
    """A job that ran. `content` is its workflow with its parameters."""

    id: int
    content: dict[str, Any]
    status: JobStatus = JobStatus.RUNNING
    parameters: Mapping[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    cancelled: bool = False
    retries_left: int = 0

    @property
    def over(self) -> bool:
        return self.status is not JobStatus.RUNNING

    def wait(self, timeout: float | None = None) -> Self:
        return self

    def cancel(self) -> None:
        self.cancelled = True

    def check(self) -> Self:
        return self

    def logs(self, follow: bool = False) -> Iterator[Any]:
        return (SimpleNamespace(text=line) for line in self.lines)


class LocalWorkflow:
    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def env(self, **variables: str) -> LocalWorkflow:
        added = [{"key": key, "value": value} for key, value in variables.items()]
        return LocalWorkflow({**self.content, "env": [*self.content["env"], *added]})


class LocalGrid:
    """Counts its submissions. Jobs whose arguments contain a text of `stuck` never end."""

    def __init__(self) -> None:
        self.jobs: dict[str, LocalJob] = {}
        self.sweeps = 0
        self.stuck: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        pass

    def workflow(self, content: dict[str, Any]) -> LocalWorkflow:
        return LocalWorkflow(content)

    def submit(self, workflow: LocalWorkflow, credits: Any, *, key: str, name: str) -> LocalJob:
        with self._lock:
            known = self.jobs.get(key)
            if known is not None:
                if known.content != workflow.content:
                    raise Conflict("The key was used with another workflow.")
                return known
            job = self.jobs[key] = LocalJob(len(self.jobs) + 1, workflow.content)
        variables = {one["key"]: one["value"] for one in workflow.content["env"]}
        job.parameters = {"REMOTE_CALL": variables["REMOTE_CALL"]}
        if variables["REMOTE_CALL"] not in self.stuck:
            command = workflow.content["steps"][0]["run"]["command"]
            done = subprocess.run(
                ["bash", "-c", command], env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE, check=False
            )
            job.lines = done.stdout.splitlines()
            job.status = JobStatus.FAILED if done.returncode else JobStatus.FINISHED
        return job

    def map(self, content: dict[str, Any], sets: Sequence[Mapping[str, str]], *, key: str, **options: Any) -> LocalSet:
        self.sweeps += 1
        workflow = LocalWorkflow(content)
        return LocalSet(self, [(workflow.env(**one), f"{key}-{number}") for number, one in enumerate(sets)])


class LocalSet:
    def __init__(self, grid: LocalGrid, wanted: list[tuple[LocalWorkflow, str]]) -> None:
        self._grid, self._wanted = grid, wanted
        self._jobs: list[LocalJob] = []
        self._cancelled = threading.Event()

    def as_completed(self) -> Iterator[LocalJob]:
        for workflow, key in self._wanted:
            job = self._grid.submit(workflow, 0, key=key, name="")
            self._jobs.append(job)
            if not job.over:
                assert self._cancelled.wait(60), "nothing ends a job that is stuck"
            yield job

    def cancel(self) -> None:
        for job in self._jobs:
            job.cancelled = not job.over
        self._cancelled.set()
