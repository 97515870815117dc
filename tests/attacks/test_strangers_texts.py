"""Texts of strangers that become large when they are expanded. They are counted first, and cost the loop nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from graphql import get_introspection_query
from graphql.language.parser import Parser

from deepgrid.errors import InputError
from deepgrid.services.admission import Limits, Rate
from deepgrid.services.admission.worker_pool import WorkerPool
from deepgrid.workflow import parse, yaml_nodes
from tests.attacks.http_support import person
from tests.attacks.loop_watch import LONGEST_STEP_S, watched_loop
from tests.compat.graphql.support import SUBMIT, job_with
from tests.gateway.relay_support import BOOK, QUICK, Backend, replace, running
from tests.services.support import Grid, Start
from tests.waiting import until

HEAD = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\n"
GOOD = f"{HEAD}steps: []\n"
PATIENT = replace(QUICK, check_within_s=60, check_wait_s=180)
MANY = Rate(1000, 1000)
TYPES = "fragment F on __Schema { types { name fields { name args { name type { name } } } inputFields { name } } }"
EQUAL = "".join(f"fragment F{n} on Query {{ ...G }} " for n in range(100))
EXPANDED = {
    "aliases of the schema": TYPES + "{" + " ".join(f"a{n}: __schema {{ ...F }}" for n in range(150)) + "}",
    "equal fields of 100 fragments": f"fragment G on Query {{ {'__typename ' * 150} }} {EQUAL}"
    f"{{ {' '.join(f'...F{n}' for n in range(100))} }}",
    "aliases in a list": "{__schema{types{inputFields{" + " ".join(f"a{n}: name" for n in range(190)) + "}}}}",
}


def nested_aliases(levels: int = 12) -> str:
    """Return a file of aliases in which each level repeats the previous one eight times."""
    lines = [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, levels)]
    return "\n".join([f"{HEAD}x-0: &a0 [x, x, x, x, x, x, x, x]", *lines, "steps: []\n"])


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
async def grid(start: Start) -> Grid:
    return await start(limits=Limits(strangers_per_address=MANY))


async def checked(web: Backend, file: str, source: str = "127.0.0.1") -> dict[str, Any]:
    """Return the report on a file that is sent from this address."""
    async with person(source) as client:
        answer = await client.post(f"{web.http.base_url}/v1/check", json={"file": file}, timeout=180)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.attack(
    "a workflow file of 900 bytes whose aliases expand to 68 thousand million values", attacker="a stranger with HTTP",
    gain="nothing: the file is refused at the alias that makes it too large",
    defence="an alias counts as much as it repeats, while the file is read; no value is expanded before",
)  # fmt: skip
def test_aliases_are_counted_before_they_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    expanded: list[yaml_nodes.Path] = []
    value = yaml_nodes._Walk.value

    def counted(walk: yaml_nodes._Walk, node: yaml.Node, path: yaml_nodes.Path) -> Any:
        expanded.append(path)
        return value(walk, node, path)

    monkeypatch.setattr(yaml_nodes._Walk, "value", counted)
    with pytest.raises(InputError, match="workflow.yaml:[0-9]+:[0-9]+: too large once its aliases are expanded"):
        parse(nested_aliases(), "workflow.yaml")
    assert len(expanded) == 0


@pytest.mark.attack(
    "a file of aliases to `/v1/check`", attacker="a stranger with HTTP", gain="nothing: the checker continues",
    defence="aliases are counted before they are expanded, so the check ends in time",
)  # fmt: skip
async def test_a_file_of_aliases_kills_no_checker(tmp_path: Path) -> None:
    async with running(BOOK, tmp_path, PATIENT) as web:
        await checked(web, GOOD)
        [used] = web.app._checks.pool._idle
        before_s = processor_s(used.pid)
        found = await checked(web, nested_aliases())
        assert processor_s(used.pid) - before_s < 0.5
        assert "too large once its aliases are expanded" in found["faults"][0]["text"]
        assert web.app._checks.pool._idle == [used]


@pytest.mark.attack(
    "12 checks of large files at once", attacker="a stranger with HTTP", gain="one check at a time",
    defence="source addresses take turns",
)  # fmt: skip
async def test_checks_of_one_address_wait_for_those_of_others(tmp_path: Path) -> None:
    large = HEAD + "steps:\n" + "- {run: {command: a}}\n" * 1500
    done: list[int] = []

    async def flood(web: Backend, number: int) -> None:
        await checked(web, large, "127.0.6.6")
        done.append(number)

    async with running(BOOK, tmp_path, replace(PATIENT, checks_at_once=1)) as web:
        await checked(web, GOOD)
        async with asyncio.TaskGroup() as tasks:
            for number in range(12):
                tasks.create_task(flood(web, number))
            await until(lambda: len(done) >= 1, within_s=180)
            assert (await checked(web, GOOD, "127.0.6.7"))["definition"]
            assert len(done) < 12, "an honest check does not wait for all earlier ones"


@pytest.mark.attack(
    "a file whose check takes too long", attacker="a stranger with HTTP", gain="one process, for two seconds",
    defence="a spare process waits while checks run; it replaces one that is killed",
)  # fmt: skip
async def test_a_killed_checker_is_replaced_before_it_is_missed(tmp_path: Path) -> None:
    async with running(BOOK, tmp_path, PATIENT) as web:
        pool = web.app._checks.pool
        await checked(web, GOOD)
        await until(lambda: pool._spare is not None and pool._spare.done())
        assert pool._spare is not None
        [used], waiting = pool._idle, pool._spare.result()
        os.kill(used.pid, signal.SIGSTOP)
        pool._within_s = 1.0
        assert "takes longer" in (await web.http.post("/v1/check", json={"file": GOOD})).text
        assert used.returncode is not None
        pool._within_s = 60.0
        await checked(web, GOOD)
        assert pool._idle == [waiting]
        await until(lambda: pool._spare is not None and pool._spare.done())


async def answered(grid: Grid, bodies: list[dict[str, Any]]) -> list[httpx.Response]:
    """Return the answers to GraphQL requests, and check that no request makes the loop wait."""
    async with person("127.0.6.6") as client:
        with watched_loop() as steps:
            answers = [await client.post(f"{grid.url}/graphql", json=body) for body in bodies]
    assert max(steps) < LONGEST_STEP_S
    return answers


@pytest.mark.parametrize("name", EXPANDED)
@pytest.mark.attack(
    "a GraphQL document of 5 KB whose fragments and lists contain 20,000 fields", attacker="a stranger with HTTP",
    gain="nothing: it is refused, and the loop never waits",
    defence="fields are counted with each use of their fragment; a separate process counts the fields of the answer",
)  # fmt: skip
async def test_documents_are_counted_as_expanded(grid: Grid, name: str) -> None:
    answers = await answered(grid, [{"query": EXPANDED[name]}] * 3)
    assert {answer.status_code for answer in answers} == {422}
    assert all(len(answer.content) < 1000 for answer in answers)


@pytest.mark.attack(
    "GraphQL jobs of 1,500 steps, and documents of 199 equal fields with arguments", attacker="a stranger with HTTP",
    gain="only its own turns in a process of low priority; the loop never waits",
    defence="documents are validated, and jobs coerced and checked, in processes that are killed after ten seconds",
)  # fmt: skip
async def test_large_requests_take_no_time_of_the_loop(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parser, "parse_document", lambda _: pytest.fail("the services' own process parses a document"))
    bodies = [
        {"query": "{" + 'a: job(batchLocationHash: "x") ' * 199 + "}"},
        {"query": SUBMIT, "variables": {"job": job_with(steps=[{"run": {"command": "x"}}] * 1500)}},
    ]
    answers = await answered(grid, bodies)
    assert "1000 entries" in answers[1].text, "it was checked"
    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.attack(
    "repeated requests for the whole schema", attacker="a stranger with HTTP",
    gain="the same cached bytes; nothing is executed",
    defence="answers that depend only on their document are cached",
)  # fmt: skip
async def test_the_schema_is_executed_once(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    async with person("127.0.6.6") as client:
        body = {"query": get_introspection_query()}
        first = await client.post(f"{grid.url}/graphql", json=body)
        assert first.json()["data"]["__schema"]["types"]
        monkeypatch.setattr(WorkerPool, "ask", lambda *_: pytest.fail("it is executed again"))
        assert (await client.post(f"{grid.url}/graphql", json=body)).content == first.content
