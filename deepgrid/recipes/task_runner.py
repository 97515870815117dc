"""Runs the tasks of a Prefect flow as jobs of the grid. Experimental.

A task's source text and its arguments travel in the job's definition. Its result comes back in the job's output, as
JSON, NumPy arrays or Arrow tables, and is never unpickled. Prefect's own engine runs each task in a thread here, so its
states, retries and names are as usual. The thread submits a job and waits for it.

    from prefect import flow, task
    from deepgrid.recipes.task_runner import GridTaskRunner

    @task
    def square(x: int) -> int:
        return x * x

    @flow(task_runner=GridTaskRunner(credits=100, key="squares"))
    def squares() -> list[int]:
        return square.map(range(10)).result()
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from deepgrid.client.errors import WaitTimeout
from deepgrid.client.job_values import Credits
from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.client.sync.classes import Grid, Job, JobSet
from deepgrid.errors import GridError, InputError
from deepgrid.extras import needs
from deepgrid.lifecycle.states import JobStatus
from deepgrid.recipes.remote import Resources
from deepgrid.recipes.results import RemoteError, result_in
from deepgrid.recipes.task_source import call_text, task_workflow, token_of
from deepgrid.recipes.task_sweep import Sweep

with needs("prefect"):
    from prefect.context import FlowRunContext, TaskRunContext
    from prefect.logging import get_run_logger
    from prefect.task_runners import ThreadPoolTaskRunner

if TYPE_CHECKING:  # what `@flow(task_runner=...)` takes; Prefect's own thread pool is typed narrower
    from prefect.futures import PrefectFuture
    from prefect.task_runners import TaskRunner

    ThreadPool = TaskRunner[PrefectFuture[Any]]
else:
    ThreadPool = ThreadPoolTaskRunner

POLL_S = 1.0
ONE_CPU = Resources()

__all__ = ["GridTaskRunner"]


class GridTaskRunner(ThreadPool):
    """Runs each task of a flow as a job: `task.submit` is a job, `task.map` one sweep.

    A task is a plain function that needs only its arguments, which are values of JSON, and modules of the node.

    Args:
        credits: Credits to lock for each job.
        key: Name of the study. A flow that is started again with the same key finds its jobs. The default is the
            flow run, so a run that Prefect repeats finds its jobs too.
        at_once: Most jobs of a sweep that wait or run at the same time.
        image: Container image with a Python, or the fields of a step's container. None means the node's own Python.
        resources: Resources of each job.
        python: The Python in the image, or on the node.
        grid: Opens the grid.
        options: Further options of `Grid.submit` and `Grid.map`, such as `max_price`.
    """

    def __init__(
        self,
        credits: Credits,
        *,
        key: str | None = None,
        at_once: int = 20,
        image: str | Mapping[str, Any] | None = None,
        resources: Resources = ONE_CPU,
        python: str = "python3",
        grid: Callable[[], Grid] = Grid,
        **options: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._settings = {
            "credits": credits,
            "key": key,
            "at_once": at_once,
            "image": image,
            "resources": resources,
            "python": python,
            "grid": grid,
            **options,
        }
        self._credits, self._key, self._at_once, self._options = credits, key, at_once, options
        self._workflow_of = functools.partial(task_workflow, image=image, resources=resources, python=python)
        self._open = grid
        self._grid: Grid | None = None
        self._sweep: Sweep | None = None
        self._sets: list[JobSet] = []
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.stopped = False

    def duplicate(self) -> Self:
        return type(self)(**self._settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridTaskRunner) and self._settings == other._settings

    __hash__ = None  # type: ignore[assignment]

    def __enter__(self) -> Self:
        self._grid, self.stopped = self._open().__enter__(), False
        self._seen.clear()
        self._sets.clear()
        return super().__enter__()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        # A signal or a person ends the flow: its jobs end too. A failed task leaves the others alone.
        self.stopped = exc_type is not None and not issubclass(exc_type, Exception)
        if self.stopped:
            self._cancel_sweeps(exc_value)
        try:
            super().__exit__(exc_type, exc_value, traceback)
        finally:
            if self._grid is not None:
                self._grid.close()
                self._grid = None

    def _cancel_sweeps(self, stop: BaseException) -> None:
        """Cancel the jobs of all sweeps; their calls wait for them. What is left running is noted on `stop`."""
        for jobs in self._sets:
            try:
                jobs.cancel()
            except GridError as error:
                stop.add_note(f"Jobs of a sweep may still run, and cost credits: {error.message}")

    def submit(self, task: Any, parameters: dict[str, Any], wait_for: Any = None, dependencies: Any = None) -> Any:
        if task.isasync:
            raise InputError(f"The task {task.name} is not a plain function.", next_step="Use `def`, without `async`.")
        place = None
        if self._sweep is not None:
            try:
                place = self._sweep.place(call_text(task.fn, parameters))
            except InputError:  # an argument is the result of another task: it gets a job of its own
                place = None
        call = Call(self, task, self._study(), self._sweep, place)

        @functools.wraps(task.fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            return call.run(*args, **kwargs)

        on_grid = task.with_options()
        on_grid.fn = run
        return super().submit(on_grid, parameters, wait_for, dependencies)  # type: ignore[safe-super]

    def map(self, task: Any, parameters: dict[str, Any], wait_for: Any = None) -> Any:
        sweep = self._sweep = Sweep(f"{self._study()}-{task.name}-{self.number(f'sweeps of {task.name}')}")
        try:
            futures = super().map(task, parameters, wait_for)
        finally:
            self._sweep = None
        if sweep.texts:
            submit = functools.partial(self.submit_sweep, task, sweep)
            threading.Thread(target=sweep.follow, args=(submit,), name=sweep.key, daemon=True).start()
        return futures

    # -- jobs --------------------------------------------------------------------------------

    def _study(self) -> str:
        """Return the first part of all keys: the study, or the flow run."""
        context = FlowRunContext.get()
        if self._key is None and context is not None and context.flow_run is not None:
            return str(context.flow_run.id)
        return self._key or "study"

    def number(self, of: str) -> int:
        """Return how often this was asked for in this run of the flow, from 1 on."""
        with self._lock:
            self._seen[of] += 1
            return self._seen[of]

    def submit_job(self, task: Any, key: str, text: str) -> Job:
        """Submit a call as a job, or return the job that it already has."""
        grid = self._running()
        workflow = grid.workflow(self._workflow_of(task.fn, key)).env(REMOTE_CALL=text)
        return grid.submit(workflow, credits=self._credits, key=key, name=task.name[:32], **self._options)

    def submit_sweep(self, task: Any, sweep: Sweep) -> Iterable[Job | Unsubmitted]:
        """Submit the jobs of a sweep, and yield each as soon as it is over."""
        sets = [{"REMOTE_CALL": text} for text in sweep.texts]
        jobs = self._running().map(
            self._workflow_of(task.fn, sweep.key),
            sets,
            credits=self._credits,
            at_once=self._at_once,
            key=sweep.key,
            name=task.name[:32],
            **self._options,
        )
        self._sets.append(jobs)
        if self.stopped:  # meanwhile
            jobs.cancel()
        return jobs.as_completed()

    def wait(self, job: Job) -> Job:
        """Wait until the job is over. It is cancelled if the flow is stopped."""
        while not job.over or job.retries_left:  # a failed attempt may have a successor of an earlier run
            if self.stopped:
                if not job.over:
                    job.cancel()
                raise InputError(f"The flow was stopped, and job {job.id} cancelled.")
            with suppress(WaitTimeout):
                job.wait(POLL_S)
        return job

    def _running(self) -> Grid:
        if self._grid is None:
            raise InputError("The task runner is not started.", next_step="Call the task in a flow.")
        return self._grid


class Call:
    """One task run: its job, and after a failure the jobs of its retries."""

    def __init__(
        self,
        runner: GridTaskRunner,
        task: Any,
        study: str,
        sweep: Sweep | None,
        place: Future[Job | Unsubmitted] | None,
    ) -> None:
        self._runner, self._task, self._study = runner, task, study
        self._sweep, self._place = sweep, place
        self._key = ""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the task. Prefect calls it once per attempt, in a thread."""
        bound = inspect.signature(self._task.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        text = call_text(self._task.fn, bound.arguments)
        if not self._key:
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            call = f"{self._study}-{self._task.name}-{digest}"
            self._key = f"{call}-{self._runner.number(call)}"
        context = TaskRunContext.get()
        attempts = context.task_run.run_count if context is not None else 1
        job, key = self._job(text, attempts)
        get_run_logger().info("The task %s is job %d.", self._task.name, job.id)
        if context is not None:
            context.task_run.name = f"{self._task.name} job {job.id}"  # sent with the task run's next state
        return _value(self._runner.wait(job), token_of(key))

    def _job(self, text: str, attempts: int) -> tuple[Job, str]:
        """Return the job and its key: the first one, or after it failed the first of the retries that did not."""
        job, key = self._first(text, attempts)
        for attempt in range(1, attempts):
            if not job.over or job.status is JobStatus.FINISHED:
                break
            key = f"{self._key}-retry-{attempt}"
            job = self._runner.submit_job(self._task, key, text)
        return job, key

    def _first(self, text: str, attempts: int) -> tuple[Job, str]:
        """Return the first job and its key. What the sweep could not submit is submitted by itself by a retry."""
        if self._place is not None and self._sweep is not None:
            job = self._place.result()
            if not isinstance(job, Unsubmitted):
                return job, self._sweep.key
            if attempts == 1:
                raise job.error
        return self._runner.submit_job(self._task, self._key, text), self._key


def _value(job: Job, token: str) -> Any:
    """Return the result in the output of a job that is over. Raises RemoteError, or JobError without a result."""
    try:
        return result_in((line.text for line in job.logs(follow=True)), token)
    except RemoteError as error:
        if not error.kind and job.status is not JobStatus.FINISHED:
            job.check()
        raise
