"""Private files of a customer's program: encrypted for the clusters that fit, decrypted when they are fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, AsyncJob, InputError, JobStatus
from deepgrid.provider.claims.claim_script import grid_files_of
from deepgrid.provider.session import ProviderSession
from deepgrid.services.client import ServicesClient
from deepgrid.workflow.needs import PRIVATE_FILES
from tests.cli.live import Live
from tests.client.stage import Customer
from tests.client.support import End, SimulatedCluster, simulated_cluster
from tests.sbatch.support import Bench
from tests.waiting import until

WORK = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run: {command: ': $N; tr a-z A-Z <"$DEEPSQUARE_INPUT/plan.txt" >"$DEEPSQUARE_OUTPUT/shouted.txt"'}
"""
NUMBERED = WORK.replace("tr a-z A-Z <", "cat ").replace(
    "/shouted.txt", '/plan.txt"; echo $N >>"$DEEPSQUARE_OUTPUT/plan.txt'
)
SECRET = b"the plan of the customer\n"


@pytest.fixture
def running() -> set[int]:
    """Numbers of jobs that the cluster keeps running."""
    return set()


@pytest.fixture
def private_cluster(live: Live, customer: Customer, running: set[int]) -> Iterator[SimulatedCluster]:
    """A cluster that can decrypt private files."""
    address = Wallet.load(customer.key).address
    name = f"private-{address[2:10]}"
    ends = lambda job: None if job.id in running else End()  # noqa: E731
    with simulated_cluster(SimulatedCluster(live, address, name, ends, private=True)) as started:
        yield started


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.txt"
    file.write_bytes(SECRET)
    return file


async def run_script(job: AsyncJob, wallet: Wallet, bench: Bench) -> None:
    """Do what the supervisor and the node do: unwrap the keys, run the script."""
    chain, on_chain = job._connection.chain, job.on_chain
    async with ServicesClient.of(chain.book, wallet.account) as services:
        model = await services.fetch_definition(job.id, on_chain.definition.definition_hash)
        session = SimpleNamespace(services=services, sender=SimpleNamespace(wallet=wallet), chain=chain)
        bench.grid_files = await grid_files_of(model, cast(ProviderSession, session), on_chain)
        done = await asyncio.to_thread(bench.run, model)
    assert done.status == 0, done.output


async def test_private_files_go_to_a_cluster_and_come_back(
    grid: AsyncGrid, live: Live, private_cluster: SimulatedCluster, running: set[int], plan: Path, tmp_path: Path
) -> None:
    running.update(range(10_000))
    job = await grid.submit(WORK, credits=100, send=plan, private=True, uses=[f"name={private_cluster.name}"])
    assert PRIVATE_FILES in job.on_chain.definition.affinity
    assert "privateFiles" in str(await job.file())
    await until(lambda: job.id in private_cluster.began)
    await job.refresh()
    wallet = Wallet.load(live.grid.keys / f"cluster-{private_cluster.name}")
    await run_script(job, wallet, Bench(tmp_path / "bench"))
    running.clear()
    await job.wait(timeout=60)
    assert [one.path for one in await job.files()] == ["shouted.txt"]
    (place,) = await job.download(tmp_path / "back")
    assert place.read_bytes() == SECRET.upper()
    with pytest.raises(InputError, match="private, so no link"):
        await job.share()
    with pytest.raises(InputError, match="are private; download them"):
        await grid.submit(WORK, credits=100, input_from=job.id)
    again = await job.again()
    assert PRIVATE_FILES in again.on_chain.definition.affinity
    jobs = await grid.map(WORK, [{"N": 1}, {"N": 2}], credits=100, send=plan, private=True)
    assert all(PRIVATE_FILES in one.on_chain.definition.affinity for one in await jobs.requested())


async def test_a_lost_job_with_private_files_is_run_again_with_them(
    grid: AsyncGrid, live: Live, private_cluster: SimulatedCluster, plan: Path, tmp_path: Path
) -> None:
    """The lost attempt leaves output, too: each has a key of its own."""
    wallet, ended = Wallet.load(live.grid.keys / f"cluster-{private_cluster.name}"), dict[int, End]()
    private_cluster.ends = lambda job: ended.get(job.id)
    here = [f"name={private_cluster.name}"]
    job = await grid.submit(WORK, credits=100, send=plan, private=True, retries=1, uses=here)
    waiting = asyncio.create_task(job.wait(timeout="300s"))
    lost = End(status=JobStatus.FAILED, error="a node of the cluster failed")
    for count, end in enumerate((lost, End()), 1):
        await until(lambda count=count: len(private_cluster.began) == count)  # type: ignore[misc]
        number = private_cluster.began[-1]
        await run_script(await grid.job(number), wallet, Bench(tmp_path / f"bench{number}"))
        ended[number] = end
    await waiting
    assert [*job.earlier_attempts, job.id] == private_cluster.began
    for number in private_cluster.began:
        (place,) = await (await grid.job(number)).download(tmp_path / f"back{number}")
        assert place.read_bytes() == SECRET.upper()


async def test_each_job_of_an_array_gets_the_private_files(
    grid: AsyncGrid, live: Live, private_cluster: SimulatedCluster, running: set[int], plan: Path, tmp_path: Path
) -> None:
    running.update(range(10_000))
    wallet = Wallet.load(live.grid.keys / f"cluster-{private_cluster.name}")
    here = [f"name={private_cluster.name}"]
    sweep = await grid.map(NUMBERED, [{"N": n} for n in (1, 2)], credits=100, send=plan, private=True, uses=here)
    await until(lambda: len(private_cluster.began) == 2)
    for number in private_cluster.began:
        await run_script(await grid.job(number), wallet, Bench(tmp_path / f"bench{number}"))
    running.clear()
    for number, result in enumerate(await sweep.results(), 1):
        (place,) = await (await grid.job(result.id)).download(tmp_path / f"back{result.id}")
        assert place.read_bytes() == SECRET + f"{number}\n".encode()


async def test_what_cannot_be_private_is_refused_before_anything_is_locked(
    grid: AsyncGrid, private_cluster: SimulatedCluster, plan: Path
) -> None:
    balance = await grid.wallet.credits
    here = [f"name={private_cluster.name}"]
    elsewhere = WORK + "output: {http: {url: 'http://127.0.0.1/x'}}\n"
    asked: dict[str, dict[str, Any]] = {
        "so neither a key nor cache": {"cache": True},
        "neither a key nor cache finds": {"key": "k"},
        "cannot be the input of a job with private files": {"send": (), "input_from": 1},
        "has published a key": {"uses": ["name=no-such-cluster"]},
    }
    for words, options in asked.items():
        chosen: dict[str, Any] = {"send": plan, "uses": here, **options}
        with pytest.raises(InputError, match=words):
            await grid.submit(WORK, credits=100, private=True, **chosen)
    with pytest.raises(InputError, match="sends its output elsewhere"):
        await grid.submit(elsewhere, credits=100, send=plan, private=True, uses=here)
    with pytest.raises(InputError, match="names an input already"):
        await grid.submit(WORK + "input: {job: 1}\n", credits=100, private=True, uses=here)
    with pytest.raises(InputError, match="is for jobs with private files"):
        await grid.submit(WORK, credits=100, send=plan, affinities=["storage.private!=none"])
    assert (await grid.jobs().count(), await grid.wallet.credits) == (0, balance)


async def test_only_the_output_can_be_private(grid: AsyncGrid, private_cluster: SimulatedCluster, live: Live) -> None:
    job = await grid.submit(WORK, credits=100, private=True, uses=[f"name={private_cluster.name}"])
    assert "privateFiles" in str(await job.file())
    assert (await job.wait(timeout=60)).status is JobStatus.FINISHED
    key = Wallet.load(live.grid.keys / f"cluster-{private_cluster.name}").public_key.hex()
    one = await grid.submit(WORK, credits=100, private=True, uses=[f"storage.private={key}"])
    assert one.on_chain.definition.has_private_files
    assert str(await one.file()).count("cluster: ") == 1
