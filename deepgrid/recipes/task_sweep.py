"""The calls of one `task.map` of a Prefect flow, and where each finds its job."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.client.sync.classes import Job


class Sweep:
    """The calls of one `task.map`, which are the jobs of one `Grid.map`."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.texts: list[str] = []
        self._jobs: defaultdict[str, deque[Future[Job | Unsubmitted]]] = defaultdict(deque)

    def place(self, text: str) -> Future[Job | Unsubmitted]:
        """Return where the job of a call appears when it is over. Equal calls are interchangeable."""
        self.texts.append(text)
        found: Future[Job | Unsubmitted] = Future()
        self._jobs[text].append(found)
        return found

    def follow(self, submit: Callable[[], Iterable[Job | Unsubmitted]]) -> None:
        """Submit the jobs, and hand each to its call as soon as it is over."""
        try:
            for job in submit():
                assert isinstance(job.parameters, Mapping)
                self._jobs[str(job.parameters["REMOTE_CALL"])].popleft().set_result(job)
        except Exception as error:  # each waiting task raises it
            for waiting in self._jobs.values():
                for one in waiting:
                    one.set_exception(error)
