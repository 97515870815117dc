"""What a serving process logs about its flow runs: plain lines, each with the names of its run and step.

Prefect's log of a run gets the same lines, without the names.
"""

from __future__ import annotations

import logging
from copy import copy

RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
# What Prefect logs about each run and each task, and its UI shows in any case.
SHOWN_BY_PREFECT = ("Finished in state Completed()", "Beginning flow run ", "View at ")
# What Prefect logs as errors when a process ends whose runs the next one continues.
ORDINARY_ENDS = (
    "Crash detected! Execution was cancelled",
    "Finished in state Crashed('Execution was cancelled",
    "Finished in state Running",
)


class WithoutLines(logging.Filter):
    """Drops lines that begin with one of these texts."""

    def __init__(self, beginnings: tuple[str, ...]) -> None:
        super().__init__()
        self._beginnings = beginnings

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is kept."""
        return not record.getMessage().startswith(self._beginnings)


_REPEATED = WithoutLines(SHOWN_BY_PREFECT)


class RunNames(logging.Formatter):
    """Writes `job 7 on alpha, submit` in place of the name of Prefect's logger."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record. One that belongs to no run keeps its logger's name."""
        if run := getattr(record, "flow_run_name", None):
            step = getattr(record, "task_name", None)
            record = copy(record)
            record.name = f"{run}, {step}" if step else run
        return super().format(record)


def start_run_logs(log_format: str) -> None:
    """Name run and step in the lines of this process, and drop lines that only repeat what Prefect shows."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(RunNames(log_format))
    drop_repeated_lines()


def drop_repeated_lines() -> None:
    """Drop lines that only repeat what Prefect shows, in this process and in the logs of its runs."""
    _drop(_REPEATED)


def silence_ordinary_ends() -> None:
    """Log no errors about the runs that this process leaves to the next one."""
    _drop(WithoutLines(ORDINARY_ENDS))


def _drop(lines: logging.Filter) -> None:
    for name in RUN_LOGGERS:
        logging.getLogger(name).addFilter(lines)
