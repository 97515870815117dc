"""`dps submit --array` counts the jobs that exist, says why others do not, and then ends with status 1."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from deepgrid.cli.verbs.repeat.array import parse_array, submit_array
from deepgrid.client.job_set import AsyncJobSet
from deepgrid.client.sweep.plan import Entry
from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus

REFUSED = Unsubmitted({}, InputError("Job 7 failed, so a job after it would be cancelled."), JobStatus.CANCELLED)


class SomeJobs:
    """A grid that submits the first jobs of an array and refuses the others."""

    def __init__(self, submitted: int, unnoted: int = 0) -> None:
        self.submitted, self.unnoted = submitted, unnoted

    async def map(self, _: Any, parameters: list[Any], **options: Any) -> AsyncJobSet:
        entries = []
        for number, one in enumerate(parameters):
            entry = Entry(one, None, b"", str(number), 0, 0, number + 1)  # type: ignore[arg-type]
            if number < self.submitted:
                entry.job = SimpleNamespace(id=20 + number)  # type: ignore[assignment]
            else:
                entry.unsubmitted = REFUSED
            entries.append(entry)
        plan = SimpleNamespace(sweep_id="177900eb00000000")
        return AsyncJobSet(SimpleNamespace(plan=plan, unnoted=self.unnoted), entries)  # type: ignore[arg-type]


def submitted(grid: SomeJobs, *, as_json: bool = False) -> None:
    asyncio.run(submit_array(grid, None, parse_array("1-100"), {}, as_json=as_json))  # type: ignore[arg-type]


def test_refused_jobs_are_counted_and_fail_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        submitted(SomeJobs(10))
    printed = capsys.readouterr()
    assert ended.value.exit_code == 1
    assert printed.out == "sweep 177900eb submitted: 10 of 100 jobs, from 20 to 29\n"
    assert printed.err.splitlines()[0] == f"90 jobs not submitted: {REFUSED.error}"


def test_an_array_without_a_job_prints_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        submitted(SomeJobs(0))
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    with pytest.raises(typer.Exit):
        submitted(SomeJobs(0), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["jobs"], told["refused"]) == ([], {str(REFUSED.error): 100})


def test_jobs_that_the_services_do_not_know_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    submitted(SomeJobs(100, unnoted=25))
    printed = capsys.readouterr()
    assert printed.out == "sweep 177900eb submitted: 100 jobs, from 20 to 119\n"
    assert "The places, tags and notes of 25 jobs are not kept" in printed.err
