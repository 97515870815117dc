"""Jobs that wait for others and take their results, as the guide shows: no client runs while they do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import LOCKED_WEI, Customer
from tests.grid.gates import Gate
from tests.grid.support import HEAD, cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

APPEND = """
input: {{job: {earlier}}}
output: {{grid: {{}}}}
steps:
  - run:
      command: |
        cp "$DEEPSQUARE_INPUT"/text "$DEEPSQUARE_OUTPUT"
        echo {word} >>"$DEEPSQUARE_OUTPUT"/text
"""


def submit(customer: Customer, workflow: str, *options: str) -> int:
    """Submit by `dps`. Returns the job's number."""
    file = customer.home / "chained.yaml"
    file.write_text(workflow)
    said = customer.dps("submit", str(file), "--credits", "100", "--json", *options, check=0).stdout
    return int(json.loads(said)["job"])


async def test_three_jobs_hand_their_results_on(customer: Customer, tmp_path: Path) -> None:
    gate = Gate(customer.grid)
    words = f"{gate.pass_command}; echo one >$DEEPSQUARE_OUTPUT/text"
    first = submit(customer, HEAD + f"output: {{grid: {{}}}}\nsteps:\n  - run: {{command: {json.dumps(words)}}}\n")
    second = submit(customer, HEAD + APPEND.format(earlier=first, word="two"), "--after", str(first))
    third = submit(customer, HEAD + APPEND.format(earlier=second, word="three"), "--after", str(second))
    told = await customer.until(first, lambda job: job.status is JobStatus.RUNNING)
    assert (await customer.job(second)).status is JobStatus.PENDING
    told_of_second = customer.dps("job", "get", str(second), check=0).stdout
    assert re.search(rf"after job {first} has finished", told_of_second)
    assert f"job {first} must finish first, then a cluster is found" in told_of_second
    assert told.wishes.after_job == 0
    gate.open()
    for job_id in (first, second, third):
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED, job_id
        await customer.settlement(job_id)
    started = [(await customer.job(job_id)).started_at for job_id in (first, second, third)]
    ended = [(await customer.job(job_id)).ended_at for job_id in (first, second, third)]
    assert ended[0] <= started[1] and ended[1] <= started[2]
    customer.dps("job", "download", str(third), "--to", str(tmp_path / "got"), check=0)
    assert (tmp_path / "got" / "text").read_text() == "one\ntwo\nthree\n"


async def test_jobs_after_a_failed_one_get_their_credits_back(customer: Customer) -> None:
    gate = Gate(customer.grid)
    first = submit(customer, steps(f"{gate.pass_command}; exit 3"))
    finished_only = submit(customer, steps("true"), "--after", str(first))
    after_that = submit(customer, steps("true"), "--after", str(finished_only))
    in_any_way = submit(customer, steps("true"), "--after-any", str(first))
    gate.open()
    assert (await customer.until(in_any_way, cold)).status is JobStatus.FINISHED
    for job_id in (finished_only, after_that):
        assert (await customer.until(job_id, cold)).status is JobStatus.CANCELLED
        assert (await customer.settlement(job_id)).refunded_wei == LOCKED_WEI
    said = customer.dps("job", "get", str(finished_only), check=0).stdout
    assert f"it waited for job {first} to finish" in said
