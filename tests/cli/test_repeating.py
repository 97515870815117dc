"""Verbs that find and repeat jobs, on a real chain with real services."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.chain.client import Chain
from deepgrid.cli.verbs.repeat import sweep
from deepgrid.cli.verbs.repeat.array import parse_array
from deepgrid.client import AsyncGrid
from deepgrid.client.repeat.job_files import JobFile
from deepgrid.client.repeat.sweep_groups import SweepGroup
from deepgrid.errors import InputError
from deepgrid.lifecycle.ends import ENDS, was_not_the_programs
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client import FilesClient
from tests.appending import push_log
from tests.cli.live import EXAMPLE, Dps, Live, Party, finished
from tests.waiting import until

HEAD = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}\n"
NODE_FAILED = "a node of the cluster failed"
SECRET = HEAD + "env: [{key: HF_TOKEN, value: hf_1}]\nsteps: [{run: {command: echo $N}}]\n"


async def test_a_job_is_found_by_its_tag_and_runs_again(
    dps: Dps, provider: Party, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = await dps.run("submit", EXAMPLE, "--credits", "100", "--tag", "project=wing", "--json")
    assert submitted.status == 0, submitted.err
    out = submitted.out
    number = json.loads(out)["job"]
    assert (await dps.run("job", "file", str(number))).out.startswith("resources:\n  tasks: ")
    assert re.search(r"^  tags +project=wing$", (await dps.run("job", "get", str(number))).out, re.M)
    monkeypatch.setenv("EDITOR", "sed -i s/Hello/Bonjour/")
    again = await dps.run("job", "again", str(number), "--edit", "--note", "in French", "--json")
    second = json.loads(again.out)["job"]
    kept = json.loads((await dps.run("job", "file", str(second), "--json")).out)
    assert "Bonjour" in kept["file"]
    assert (kept["tags"], kept["note"]) == ({"project": "wing"}, "in French")
    await dps.run("job", "tag", str(second), "--tag", "best")
    assert f"\n{second:>2}" in "\n" + (await dps.run("job", "list", "--tag", "best")).out
    nothing = await dps.run("job", "list", "--tag", "none")
    assert (nothing.out, nothing.err) == ("", "You have no jobs with these tags.\n")


async def test_a_time_is_priced_before_it_is_locked(dps: Dps, provider: Party, chain: Chain) -> None:
    outcome = await dps.run("submit", EXAMPLE, "--time", "4h", "--json")
    assert "4 hours cost " in outcome.err and "Partial minutes are rounded up" in outcome.err
    job = await chain.job(json.loads(outcome.out)["job"])
    assert job.wishes.min_minutes == 240
    assert f"{json.loads(outcome.out)['locked_wei']}" == str(job.locked_wei)
    both = await dps.run("submit", EXAMPLE, "--time", "4h", "--credits", "1")
    assert (both.status, "not both" in both.err) == (2, True)
    assert "4 hours cost " in (await dps.run("offers", EXAMPLE, "--time", "4h")).err


async def test_an_array_gets_files_that_are_sent_once(dps: Dps, provider: Party, live: Live, tmp_path: Path) -> None:
    file, sent = tmp_path / "swept.yaml", tmp_path / "data"
    file.write_text(HEAD + "steps: [{run: {command: 'cat $DEEPSQUARE_INPUT/data/$N'}}]\n")
    sent.mkdir()
    for number in (1, 2, 3):
        (sent / str(number)).write_text("of this array")
    outcome = await dps.run("submit", file, "--array", "N=1-3", "--send", sent, "--credits", "100", "--json")
    assert outcome.status == 0, outcome.err
    async with AsyncGrid(dps.key, book=live.book) as grid:
        jobs = [await grid.job(number) for number in json.loads(outcome.out)["jobs"]]
        used = await FilesClient((await grid._connect()).session.services).usage()
    assert len({job.on_chain.definition.definition_hash for job in jobs}) == 3
    assert 3 * len("of this array") < used.used < 300  # with their list


async def test_a_lost_job_runs_again_with_its_files(
    dps: Dps, operator: Party, provider: Party, live: Live, tmp_path: Path
) -> None:
    sent = tmp_path / "data"
    sent.write_text("of this job")
    submit = ("submit", EXAMPLE, "--send", sent, "--credits", "100", "--retries", "1", "--tag", "project=wing")
    process = await dps.start(*submit)
    async with AsyncGrid(dps.key, book=live.book) as grid:

        async def is_submitted() -> bool:
            return await grid.jobs("pending").count() == 1

        for status, error in [(JobStatus.FAILED, NODE_FAILED), (JobStatus.FINISHED, "")]:
            await until(is_submitted)
            (job,) = [job async for job in grid.jobs("pending")]
            await operator.writer.meta_schedule(job.id, provider.address)
            await provider.writer.claim_next()
            await provider.writer.set_running(job.id, 0)
            await push_log(provider.services, job.id, 0, b"", final=True)
            await provider.writer.settle(job.id, status, 1, error)
        outcome = await finished(process)
        second, first = [job async for job in grid.jobs()]
        files = [await job.file() for job in (first, second)]
    assert (outcome.status, f"{NODE_FAILED}: job {first.id} runs again as job {second.id}" in outcome.out) == (0, True)
    assert files[0] == files[1]
    assert re.search(r"^input:\n  grid:\n    files: \S+", files[1].text, re.M) and "\noutput:\n  grid:" in files[1].text


async def test_an_array_is_a_sweep_and_secrets_are_asked_for(dps: Dps, provider: Party, tmp_path: Path) -> None:
    file = tmp_path / "swept.yaml"
    file.write_text(SECRET)
    outcome = await dps.run("submit", file, "--array", "N=1-3", "--credits", "100", "--json")
    sweep, jobs = json.loads(outcome.out)["sweep"], json.loads(outcome.out)["jobs"]
    assert len(jobs) == 3
    listed = (await dps.run("sweep", "list")).out
    assert sweep[:8] in listed and "3 pending of 3" in listed
    shown = json.loads((await dps.run("sweep", "show", sweep[:8], "--json")).out)
    assert [job["parameters"] for job in shown["jobs"]] == [[{"N": str(n)}] for n in (1, 2, 3)]
    for number in jobs[:2]:
        await dps.run("job", "cancel", str(number))
    assert "2 cancelled" in (await dps.run("sweep", "show", sweep, "--failed")).out
    retried = await dps.run("sweep", "retry", sweep)
    assert (retried.status, "env.HF_TOKEN" in retried.err, "fill them in" in retried.err) == (2, True, True)


async def test_an_array_waits_for_an_earlier_job(dps: Dps, provider: Party, live: Live) -> None:
    first = json.loads((await dps.run("submit", EXAMPLE, "--credits", "100", "--json")).out)["job"]
    array = ("submit", EXAMPLE, "--array", "1-3", "--credits", "100", "--after-any", str(first), "--json")
    jobs = json.loads((await dps.run(*array)).out)["jobs"]
    async with AsyncGrid(dps.key, book=live.book) as grid:
        wishes = [(await grid.job(number)).on_chain.wishes for number in jobs]
        sweep = await grid.map(EXAMPLE, [{"N": 1}], credits=100, after=await grid.job(first))
        [job] = await sweep.requested()
    assert [(one.after_job, one.after_any) for one in wishes] == 3 * [(first, True)]
    assert (job.on_chain.wishes.after_job, job.on_chain.wishes.after_any) == (first, False)


async def test_the_result_of_an_equal_job_is_taken(dps: Dps, operator: Party, provider: Party) -> None:
    submit = ("submit", EXAMPLE, "--credits", "100", "--cache")
    first = json.loads((await dps.run(*submit, "--json")).out)
    assert "cached" not in first
    await operator.writer.meta_schedule(first["job"], provider.address)
    await provider.writer.claim_next()
    await provider.writer.set_running(first["job"], 0)
    await provider.writer.settle(first["job"], JobStatus.FINISHED, 1)
    said = f"job {first['job']} was equal and has finished: nothing is locked. See `dps job receipt {first['job']}`.\n"
    assert (await dps.run(*submit)).out == said
    again = json.loads((await dps.run(*submit, "--json")).out)
    assert (again["job"], again["cached"], again["locked_wei"]) == (first["job"], True, "0")
    refused = await dps.run(*submit, "--array", "1-3")
    assert (refused.status, "for one job" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "variable", "numbers", "at_once"),
    [
        ("1-3", "SLURM_ARRAY_TASK_ID", (1, 2, 3), 3),
        ("SEED=0-8:4%2", "SEED", (0, 4, 8), 2),
        ("1,5,7-8", "SLURM_ARRAY_TASK_ID", (1, 5, 7, 8), 4),
    ],
)
def test_ranges_are_those_of_slurm(text: str, variable: str, numbers: tuple[int, ...], at_once: int) -> None:
    found = parse_array(text)
    assert (found.variable, found.numbers, found.at_once) == (variable, numbers, at_once)


@pytest.mark.parametrize("text", ["", "3-1", "1-3:0", "a", "1-", "1-99999999", "1%0", "A B=1", "-1", "1,,2"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no range of an array"):
        parse_array(text)


def test_only_failures_of_clusters_are_repeated() -> None:
    repeated = {state for state, end in ENDS.items() if was_not_the_programs(end.status, end.error)}
    assert repeated == {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"}
    assert was_not_the_programs(JobStatus.FAILED, "the cluster ended the job before its time")
    assert not was_not_the_programs(JobStatus.FAILED, "")
    assert not was_not_the_programs(JobStatus.CANCELLED, "a node of the cluster failed")


KEPT: dict[str, str] = {"API_TOKEN": "***", "N": "1"}


@pytest.mark.parametrize(
    ("parameters", "expected", "is_said"),
    [
        ([(KEPT,), (KEPT,)], [("HF_TOKEN", 7), ("API_TOKEN", 7), ("API_TOKEN", 8)], False),
        ([(), ()], [("API_TOKEN HF_TOKEN", 7)], True),
        ([(), (KEPT,)], [("HF_TOKEN", 7), ("API_TOKEN", 7), ("API_TOKEN", 8)], False),
        ([({"N": "1"},), (KEPT,)], [("API_TOKEN HF_TOKEN", 7), ("API_TOKEN", 8)], False),
        ([(KEPT,), ({"N": "1"},)], [("HF_TOKEN", 7), ("API_TOKEN", 7), ("API_TOKEN", 8)], False),
        ([({"N": "1"},), ({"N": "2"},)], [("API_TOKEN HF_TOKEN", 7)], False),
    ],
)
async def test_a_retry_asks_each_job_for_its_own_secrets(
    parameters: list[tuple[dict[str, str], ...]],
    expected: list[tuple[str, int]],
    is_said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It asked once, for the first job, and gave the answer to all. Then it asked each job whose sets are not kept."""
    asked = list[tuple[str, int]]()

    def ask(places: Sequence[str], job_id: int) -> dict[str, str]:
        if places:
            asked.append((" ".join(place.removeprefix("env.") for place in places), job_id))
        return {place: f"{place} of {job_id}" for place in places}

    async def file() -> JobFile:
        return JobFile("", ("env.API_TOKEN", "env.HF_TOKEN"))

    monkeypatch.setattr(sweep, "ask_secrets", ask)
    rows: Any = [SimpleNamespace(parameters=sets, failed=True) for sets in parameters]
    jobs: Any = [SimpleNamespace(id=number, file=file) for number in (7, 8)]
    secrets, own = await sweep._ask_secrets(SweepGroup("", "", 2, tuple(rows)), jobs)
    assert asked == expected
    assert ("Each secret is asked for once" in capsys.readouterr().err) == is_said
    for job in jobs:
        assert {*secrets, *own.get(job.id, {})} == {"env.API_TOKEN", "env.HF_TOKEN"}
