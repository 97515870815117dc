"""The lines of a serving process about its flow runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from orchestration.run_logs import RUN_LOGGERS, drop_repeated_lines, start_run_logs

OF_RUN = {"flow_run_name": "job 7 on alpha", "send_to_api": False}


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """Return the log of a process, which has the standard handlers only."""
    root, written = logging.getLogger(), StringIO()
    before, level = root.handlers[:], root.level
    root.handlers[:], root.level = [logging.StreamHandler(written)], logging.INFO
    filters = {name: logging.getLogger(name).filters[:] for name in RUN_LOGGERS}
    start_run_logs("%(levelname)s %(name)s: %(message)s")
    yield written
    root.handlers[:], root.level = before, level
    for name, its in filters.items():
        logging.getLogger(name).filters[:] = its


def test_each_line_names_its_run_and_its_step(lines: StringIO) -> None:
    logging.getLogger("prefect.flow_runs").info("settled", extra=OF_RUN)
    logging.getLogger("prefect.task_runs").info("submitted", extra={**OF_RUN, "task_name": "submit"})
    logging.getLogger("deepgrid.slurm").info("a poll failed")
    assert lines.getvalue().splitlines() == [
        "INFO job 7 on alpha: settled",
        "INFO job 7 on alpha, submit: submitted",
        "INFO deepgrid.slurm: a poll failed",
    ]


def test_a_line_that_only_repeats_a_state_is_dropped(lines: StringIO) -> None:
    logging.getLogger("prefect.flow_runs").info("Beginning flow run 'job 7 on alpha' for flow 'run_job'", extra=OF_RUN)
    logging.getLogger("prefect.engine").info("View at http://127.0.0.1:4200/runs/flow-run/7")
    logging.getLogger("prefect.task_runs").info("Finished in state Completed()", extra=OF_RUN)
    logging.getLogger("prefect.flow_runs").info("Finished in state Completed('The job is finished.')", extra=OF_RUN)
    assert lines.getvalue() == "INFO job 7 on alpha: Finished in state Completed('The job is finished.')\n"


@pytest.mark.usefixtures("lines")
def test_a_process_that_runs_many_flows_has_one_filter() -> None:
    before = {name: len(logging.getLogger(name).filters) for name in RUN_LOGGERS}
    drop_repeated_lines()
    drop_repeated_lines()
    assert {name: len(logging.getLogger(name).filters) for name in RUN_LOGGERS} == before
