"""The programs of the guide for Python and of the client's specification run unchanged on a live grid."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, Grid, JobStatus
from deepgrid.lifecycle.job import Job
from tests.cli.live import CREDIT, EXAMPLE, Party
from tests.client import printed
from tests.client.stage import Customer
from tests.client.support import End, SimulatedCluster, run_program
from tests.docs.blocks import blocks
from tests.sbatch.bucket import Bucket
from tests.sbatch.bucket import bucket as bucket
from tests.sbatch.bucket import s3_server as s3_server

GUIDE = "docs/how-to/python.md"
BLOCKS = {str(block): block.text for block in blocks() if block.page == GUIDE and block.kind == "python"}
A_JOB = re.compile(r"\bjob\(7\)")


@pytest.mark.parametrize("name", BLOCKS)
def test_it_runs(
    name: str, customer: Customer, cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(EXAMPLE, tmp_path / "train.yaml")
    monkeypatch.chdir(tmp_path)
    run_program(with_own_job(BLOCKS[name], customer), customer)


def with_own_job(text: str, customer: Customer) -> str:
    """Return the program with the id of this customer's job in place of 7."""
    if A_JOB.search(text):
        with Grid(customer.key, customer.book) as grid:
            text = A_JOB.sub(f"job({grid.submit(EXAMPLE, credits=100).id})", text)
    return text


def test_the_guide_begins_with_the_import() -> None:
    assert len(BLOCKS) >= 7
    assert all(re.search(r"^from deepgrid import (?:Async)?Grid", text, re.M) for text in BLOCKS.values())


# -- the specification ---------------------------------------------------------------------------

GRIDS = {"Grid": Grid, "AsyncGrid": AsyncGrid}  # because earlier programs have imported them


@pytest.fixture
async def rich(customer: Customer, operator: Party) -> Customer:
    """A customer with enough credits for 20 jobs at once."""
    await operator.writer.mint(Wallet.load(customer.key).address, 2000 * CREDIT)
    return customer


@pytest.mark.parametrize("kind", printed.MAPS)
def test_each_block_of_the_specification_runs_as_printed_submit_and_map(
    kind: str, rich: Customer, cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def ends(job: Job) -> End:
        fails = job.name == "sweep" and job.id % 7 == 0
        return End(status=JobStatus.FAILED, wait_status=768) if fails else End()

    cluster.ends = ends
    for name in ("train.yaml", "sweep.yaml"):
        shutil.copy(EXAMPLE, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    found = run_program(printed.MAPS[kind], rich, {"rates": (0.1, 0.2)})
    failed = sum(job_id % 7 == 0 for job_id in found["sweep"].ids)
    assert (len(found["sweep"]), len(found["again"])) == (20, failed)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("{'RATE': ") for line in lines) == 20
    assert ["jobs", "20"] in [line.split() for line in lines]


@pytest.mark.parametrize("kind", printed.LOGS)
def test_each_block_of_the_specification_runs_as_printed_live_log(
    kind: str, customer: Customer, cluster: SimulatedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run_program(with_own_job(printed.LOGS[kind], customer), customer, GRIDS)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["one", "two"]


@pytest.mark.parametrize("kind", printed.QUOTES)
def test_each_block_of_the_specification_runs_as_printed_quote_and_download(
    kind: str, customer: Customer, cluster: SimulatedCluster, bucket: Bucket, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("1.png", "2.png", "notes.txt"):
        bucket.put(f"out/{name}", name.encode())
    workflow = yaml.safe_load(EXAMPLE.read_text()) | {"output": bucket.at("/out")}
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(workflow))
    monkeypatch.chdir(tmp_path)
    found = run_program(printed.QUOTES[kind], customer, GRIDS)
    assert cluster.name in [offer.cluster for offer in found["quote"].offers]
    assert sorted(found["files"]) == [Path("frames/1.png"), Path("frames/2.png")]
    assert Path("frames/1.png").read_bytes() == b"1.png"
