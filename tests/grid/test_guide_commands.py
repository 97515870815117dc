"""Every command of the guides for customers works as it is typed, on the one-machine grid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.docs.blocks import Block, blocks
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.support import cold, steps

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]

GUIDES = (
    "start", "submit", "clusters", "time", "files", "environment", "gpu", "sweep", "chain-jobs", "cancel", "waiting",
    "repeat", "bills",
)  # fmt: skip
WHILE_IT_RUNS = ("time", "cancel")
WITH_PYTHON = ("files", "time", "chain-jobs", "repeat")
REFUSED = {"gpu": ("dps submit job.yaml --time 2h --uses gpu=a100",)}  # the GPUs of this grid have no type
NOT_TYPED = ("pip install", "python3 -m venv", "dps notify", "nvidia-smi")
ON_PAGES = re.compile(r"\b(?:7|12)\b(?!-)")  # not the month of a date
SWEEP_ON_PAGE, ARRAY_ON_PAGE = "177900eb", "1-100"


def running(job: Job) -> bool:
    return job.status is JobStatus.RUNNING


@dataclass
class Typist:
    """Types what a page shows. The numbers of jobs on the page stand for the job that was submitted last."""

    customer: Customer
    folder: Path
    default: str
    ready: Callable[[Job], bool]
    key: Path
    given: str = ""
    job_id: int = 0

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run one command, with its files in place, when the job that it speaks of is ready."""
        self.write_files(command)
        command = ON_PAGES.sub(str(self.job_id), command)
        command = command.replace(ARRAY_ON_PAGE, "1-3").replace(SWEEP_ON_PAGE, self._sweep(command))
        done = self.run("bash", "-c", command)
        if found := re.findall(r"^job (\d+) submitted", done.stdout, re.M):
            self.job_id = int(found[-1])
        return done

    def execute(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program."""
        self.write_files(program)
        return self.run(sys.executable, "-c", ON_PAGES.sub(str(self.job_id), program))

    async def wait(self) -> None:
        """Wait until the job is ready. Without a job, one is submitted."""
        if not self.job_id:
            self.job_id = self.customer.submit(self.default)
        await self.customer.until(self.job_id, lambda job: self.ready(job) or cold(job))

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        grid = self.customer.grid
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "DEEPGRID_BOOK": str(grid.book),
            "DPS_KEY_FILE": str(self.key),
            "EDITOR": "true",
        }
        return subprocess.run(
            argv, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )

    def write_files(self, command: str) -> None:
        if "dps init" in command:
            (self.folder / "job.yaml").unlink(missing_ok=True)
            return
        for name in re.findall(r"[\w-]+\.yaml", command):
            if not (self.folder / name).exists():
                (self.folder / name).write_text(self.given or self.default)

    def _sweep(self, command: str) -> str:
        if SWEEP_ON_PAGE not in command:
            return ""
        listed = self.run("dps", "sweep", "list").stdout
        return str(re.findall(r"\b[0-9a-f]{8}\b", listed)[0])


@pytest.fixture
def typist(customer: Customer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Typist]:
    lasting = request.param in WHILE_IT_RUNS
    job = steps("sleep 120") if lasting else steps('echo done | tee "$DEEPSQUARE_OUTPUT/done.txt"')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.csv").write_text("a,b\n")
    key = tmp_path / ".dps" / "key" if request.param == "start" else customer.grid.keys.file("customer")
    yield (typist := Typist(customer, tmp_path, job, running if lasting else cold, key))
    if lasting and typist.job_id:
        customer.dps("job", "cancel", str(typist.job_id))


def shown(page: str) -> Iterator[Block]:
    kinds = ("yaml", "sh", "python") if page in WITH_PYTHON else ("yaml", "sh")
    return (one for one in blocks() if one.page == f"docs/how-to/{page}.md" and one.kind in kinds and not one.not_run)


@pytest.mark.parametrize(("page", "typist"), [(page, page) for page in GUIDES], indirect=["typist"])
async def test_the_commands_of_a_guide_work(page: str, typist: Typist) -> None:
    for block in shown(page):
        if block.kind == "yaml":
            typist.given = block.text
            continue
        for command in block.lines if block.kind == "sh" else [block.text]:
            if not command.strip() or any(word in command for word in NOT_TYPED):
                continue
            if ON_PAGES.search(command):
                await typist.wait()
            done = typist.type(command) if block.kind == "sh" else typist.execute(command)
            refused = any(word in command for word in REFUSED.get(page, ()))
            assert (done.returncode != 0) == refused, (command, done.stdout, done.stderr)
