"""Jobs are found by their tags, and repeated from the files that the services keep."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, InputError, JobStatus, NotFound
from deepgrid.client.engine.own_copies import OwnCopies
from deepgrid.client.repeat.sweep_groups import RETRY
from deepgrid.services.kept_messages import MOST_PARAMETER_BYTES
from deepgrid.workflow import canonical, hash_definition
from tests.cli.live import EXAMPLE, Live
from tests.client.stage import Customer, Stage
from tests.client.support import End, SimulatedCluster

SWEPT = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run: {command: echo $N}
"""
SECRET = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run:
      command: "true"
      container: {image: debian, registry: r.example, username: me, password: s3cr3t}
"""


async def test_a_job_is_repeated_from_its_kept_file(grid: AsyncGrid, customer: Customer, stage: Stage) -> None:
    job = await grid.submit(
        EXAMPLE, credits=100, name="first", tags=["project=wing"], note="try", uses=["os=linux"], min_time="2m",
        give_up_after="1h", prefer="price",
    )  # fmt: skip
    file = await job.file()
    assert (file.tags, file.note, file.masked) == ({"project": "wing"}, "try", ())
    again = await job.again()
    assert (again.name, again.locked, again.status) == ("first", 100, JobStatus.PENDING)
    ours, theirs = again.on_chain, job.on_chain
    assert replace(ours.definition, definition_hash="") == replace(theirs.definition, definition_hash="")
    assert replace(ours.wishes, give_up_at=0) == replace(theirs.wishes, give_up_at=0)
    assert ours.wishes.give_up_at - ours.submitted_at == pytest.approx(3600, abs=20)
    assert [one.id async for one in grid.jobs(tags={"project": "wing"})] == [again.id, job.id]
    await again.tag(["project=hull"], note="better")
    assert [one.id async for one in grid.jobs(tags="project=hull")] == [again.id]
    assert [one.id async for one in grid.jobs("pending", tags="project")] == [again.id, job.id]
    assert (await again.file()).note == "better"


async def test_a_masked_secret_is_asked_for_and_never_shown(grid: AsyncGrid, customer: Customer) -> None:
    job = await grid.submit(SECRET, credits=100, uses=["containers=enroot"])
    file = await job.file()
    assert "s3cr3t" not in str(file)
    assert file.masked == ("steps[0].run.container.password",)
    with pytest.raises(InputError, match=r"password of the job is not kept"):
        await job.again()
    again = await job.again(secrets={"steps[0].run.container.password": "new"})
    assert (await again.file()).text == file.text
    copies = OwnCopies(Wallet.load(customer.key))
    found = copies.find(job.on_chain.definition.definition_hash)
    assert found is not None and b"s3cr3t" in found
    kept = customer.key.with_name(customer.key.name + ".jobs") / job.on_chain.definition.definition_hash
    assert b"s3cr3t" not in kept.read_bytes() and kept.stat().st_mode & 0o077 == 0


async def test_the_file_of_another_customer_is_refused(grid: AsyncGrid, live: Live, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    async with AsyncGrid(live.grid.keys / "operator", live.book) as other:
        with pytest.raises(NotFound, match=f"Job {job.id} is another customer's"):
            await (await other.job(job.id)).file()


async def test_a_time_buys_itself_at_the_dearest_cluster(grid: AsyncGrid, cluster: SimulatedCluster) -> None:
    quote = await grid.estimate(EXAMPLE, minutes=240)
    job = await grid.submit(EXAMPLE, time="4h")
    assert job.locked == max(offer.cost for offer in quote.offers) == quote.needed
    assert job.on_chain.wishes.min_minutes == 240
    assert (await job.again(time="1h")).on_chain.wishes.min_minutes == 60
    with pytest.raises(InputError, match="but the job must get 240"):
        await job.again(credits=100)
    cheapest = min(offer.rate for offer in quote.offers)
    cheap = await grid.submit(EXAMPLE, time="4h", max_price=cheapest)
    assert cheap.locked == max(Decimal(240) * cheapest, Decimal(1))
    with pytest.raises(InputError, match="missing, or given twice"):
        await grid.submit(EXAMPLE, credits=1, time="4h")
    with pytest.raises(InputError, match="missing, or given twice"):
        await grid.submit(EXAMPLE)
    with pytest.raises(InputError, match="its price is not known"):
        await grid.submit(EXAMPLE, time="4h", uses=["os=plan9"])


async def test_a_sweep_is_a_group_and_its_failed_part_is_repeated(
    grid: AsyncGrid, customer: Customer, cluster: SimulatedCluster
) -> None:
    cluster.ends = lambda job: End(status=JobStatus.FAILED if job.id == cluster.began[0] else JobStatus.FINISHED)
    sweep = await grid.map(SWEPT, [{"N": n} for n in range(4)], credits=100, name="scan", tags=["project=scan"])
    await sweep.wait(timeout="60s")
    (group,) = await grid.sweeps()
    assert (group.name, group.size, group.columns, group.tags) == ("scan", 4, ["N"], {"project": "scan"})
    assert [row.parameters for row in group.rows] == [({"N": str(n)},) for n in range(4)]
    assert group.progress == "3 finished, 1 failed of 4"
    again = await grid.retry_sweep(group.id[:6])
    assert await grid.retry_sweep(group.id) == [], "it waits or runs"
    await (await grid.job(again[0])).wait(timeout="60s")
    (group,) = await grid.sweeps(tags=["project"])
    assert group.progress == "4 finished of 4"
    assert [row.attempts for row in group.rows].count(2) == 1
    with pytest.raises(NotFound, match="There is no sweep 0000 of yours"):
        await grid.sweep("0000" if not group.id.startswith("0000") else "1111")


async def test_secret_parameters_of_a_sweep_are_masked_and_asked_per_job(
    grid: AsyncGrid, customer: Customer, cluster: SimulatedCluster
) -> None:
    """The services kept them in clear text, and a retry gave the secret of the first job to all."""
    cluster.ends = lambda job: End(status=JobStatus.FAILED)
    sets = [{"API_TOKEN": f"secret-{n}", "N": n} for n in range(2)]
    sweep = await grid.map(SWEPT.replace("$N", "$N $API_TOKEN"), sets, credits=100)
    await sweep.wait(timeout="60s")
    (group,) = await grid.sweeps()
    assert [row.parameters for row in group.rows] == [({"API_TOKEN": "***", "N": str(n)},) for n in range(2)]
    place = "env.API_TOKEN"
    with pytest.raises(InputError, match=f"secret {place} of the job is not kept"):
        await grid.retry_sweep(group.id, secrets={place: "secret-0"})
    own = {row.job_id: {place: f"secret-{row.at - 1}"} for row in group.failed}
    again = [await grid.job(number) for number in await grid.retry_sweep(group.id, own_secrets=own)]
    expected = [
        await _hash_again(grid, row.job_id, canonical(entry.definition))
        for row, entry in zip(group.failed, sweep._entries, strict=True)
    ]
    assert [job.on_chain.definition.definition_hash for job in again] == expected


async def test_a_secret_for_all_jobs_is_taken_if_their_parameters_are_not_kept(
    grid: AsyncGrid, customer: Customer, cluster: SimulatedCluster
) -> None:
    """Each variable counted as a parameter then: the secret was dropped, and said to be missing."""
    cluster.ends = lambda job: End(status=JobStatus.FAILED)
    workflow = SWEPT.replace("steps:", "env: [{key: API_TOKEN, value: secret}]\nsteps:")
    sets = [{"N": f"{n}" * MOST_PARAMETER_BYTES} for n in range(2)]
    sweep = await grid.map(workflow, sets, credits=100)
    await sweep.wait(timeout="60s")
    (group,) = await grid.sweeps()
    assert [row.parameters for row in group.rows] == [(), ()]
    place = "env.API_TOKEN"
    first, second = [row.job_id for row in group.failed]
    own = {second: {place: "another"}}
    again = [
        await grid.job(number)
        for number in await grid.retry_sweep(group.id, secrets={place: "secret"}, own_secrets=own)
    ]
    contents = [canonical(entry.definition) for entry in sweep._entries]
    assert [job.on_chain.definition.definition_hash for job in again] == [
        await _hash_again(grid, first, contents[0]),
        await _hash_again(grid, second, contents[1].replace(b'"secret"', b'"another"')),
    ]


async def _hash_again(grid: AsyncGrid, job_id: int, content: bytes) -> str:
    """Return the hash of the definition that repeats a job."""
    key = (await grid._connect()).idempotency_key(RETRY, f"job {job_id}")
    return hash_definition(key.salt(), content)


def test_local_files_are_limited_and_bound_to_their_hash(tmp_path: Path) -> None:
    wallet = Wallet.create(tmp_path / "key")
    copies = OwnCopies(wallet, most_files=10)
    for number in range(12):
        copies.keep(f"{number:064x}", b"content %d" % number)
    assert len(list((tmp_path / "key.jobs").iterdir())) <= 11
    assert copies.find(f"{11:064x}") == b"content 11"
    (tmp_path / "key.jobs" / f"{11:064x}").rename(tmp_path / "key.jobs" / f"{99:064x}")
    assert copies.find(f"{99:064x}") is None
    assert copies.find("../key") is None
