"""`POST /v1/check`: the project's own validator, in processes that cannot stall or leak."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.services.admission import Rate
from deepgrid.services.admission.worker_pool import KEPT_VARIABLES
from deepgrid.workflow import canonical, parse
from tests.gateway.relay_support import BOOK, QUICK, Backend, running

GOOD = """\
resources: {tasks: 2, cpusPerTask: 3, memPerCpu: 128, gpus: 1}
steps:
  - run: {command: hostname, resources: {gpusPerTask: 1}}
"""
SECRET = "hunter2-the-password"


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Backend]:
    async with running(BOOK, tmp_path, replace(QUICK, check_within_s=30)) as backend:
        yield backend


async def test_a_good_file_gives_the_definition_that_is_signed(web: Backend) -> None:
    found = (await web.http.post("/v1/check", json={"file": GOOD})).json()
    assert found == {
        "definition": canonical(parse(GOOD, "x").model).decode(),
        "resources": {"gpus": 1, "mem_per_cpu_mb": 128, "cpus_per_task": 3, "ntasks": 2},
        "faults": [], "warnings": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "line", "column", "text"),
    [
        ("resources: {tasks: 2}\nsteps: [", 2, None, None),
        (GOOD.replace("tasks: 2", "tasks: -2"), 1, 20, "resources.tasks: must be at least"),
        (GOOD + "  - run: {comand: x}\n", 4, None, "did you mean"),
        ("a: " + "[" * 50_000, 1, None, None),
        ("\x00", 1, None, None),
        ("", 1, 1, None),
    ],
)  # fmt: skip
async def test_faults_have_their_place(
    web: Backend, file: str, line: int, column: int | None, text: str | None
) -> None:
    found = (await web.http.post("/v1/check", json={"file": file})).json()
    assert found["definition"] is None
    places = [(fault["line"], fault["column"]) for fault in found["faults"]]
    assert line in [place[0] for place in places]
    assert column is None or (line, column) in places
    assert text is None or any(text in fault["text"] for fault in found["faults"])


async def test_modules_are_refused_where_they_cannot_be_fetched(web: Backend) -> None:
    file = GOOD + "  - name: x\n    use: {source: github.com/a/b@v1}\n"
    found = (await web.http.post("/v1/check", json={"file": file})).json()
    assert found["definition"] is None
    [fault] = found["faults"]
    assert fault["line"] == 5
    assert "`dps web`" in fault["text"]
    assert "`dps submit`" in fault["text"]


async def test_a_local_page_resolves_modules(tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    (module / "module.yaml").write_text("name: greet\ndescription: x\nsteps:\n  - run: {command: echo hello}\n")
    async with running(BOOK, tmp_path, local=True) as web:
        file = GOOD + f"  - name: x\n    use: {{source: {module}}}\n"
        found = (await web.http.post("/v1/check", json={"file": file})).json()
    assert found["faults"] == [] or "module" in found["faults"][0]["text"]
    assert all("`dps web`" not in fault["text"] for fault in found["faults"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422), (b"{}", 422), (b'{"file": 7}', 422), (b'{"file": "x", "modules": true}', 422),
        (b'{"file": "' + SECRET.encode() + b'"', 422), (b"[" * 100_000, 422),
        (b'{"file": "' + b"a" * (256 * 1024 + 1) + b'"}', 413), (b" " * (6 * 256 * 1024 + 1), 413),
    ],
)  # fmt: skip
async def test_hostile_bodies_are_refused_without_an_echo(web: Backend, body: bytes, status: int) -> None:
    answer = await web.http.post("/v1/check", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert SECRET not in answer.text
    assert (await web.http.post("/v1/check", content=GOOD)).status_code == 415
    assert (await web.http.get("/v1/check")).status_code == 405


async def test_secrets_are_not_logged(web: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for file in (GOOD.replace("hostname", SECRET), f"password: {SECRET}\n", f"{SECRET}: ["):
        answer = await web.http.post("/v1/check", json={"file": file})
        assert answer.status_code == 200
    assert SECRET not in caplog.text


async def test_a_check_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(BOOK, tmp_path, replace(QUICK, check_within_s=0.0)) as web:
        answer = await web.http.post("/v1/check", json={"file": GOOD})
        assert answer.status_code == 422
        assert "takes longer" in answer.json()["error"]
        assert len(web.app._checks.pool._all) <= 1, "its process is ended; the next one may have started"


async def test_a_worker_that_died_is_replaced(web: Backend) -> None:
    await web.http.post("/v1/check", json={"file": GOOD})
    [process] = web.app._checks.pool._idle
    process.kill()
    await process.wait()
    answers = [await web.http.post("/v1/check", json={"file": GOOD}) for _ in range(2)]
    assert answers[-1].status_code == 200


async def test_checks_run_in_few_processes_and_one_address_has_its_share(tmp_path: Path) -> None:
    limits = replace(QUICK, check_within_s=30, check_wait_s=60, checks_per_address=Rate(0.001, 12))
    async with running(BOOK, tmp_path, limits) as web:
        asked = [web.http.post("/v1/check", json={"file": GOOD}) for _ in range(13)]
        found = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in found) == [200] * 12 + [429]
        assert len(web.app._checks.pool._all) <= 2, "one address has one turn, and one process waits"


def test_the_environment_of_a_worker_holds_no_password() -> None:
    assert not any("DATABASE" in name for name in KEPT_VARIABLES)
