"""`./run bench chain`: compares job life cycles per second with a naive client, on a chain with one block per second.

A life is request, assignment, claim, RUNNING, settled. Three clients run them on the same chain, one after another.
The naive client is plain web3.py: estimate, nonce from the node, wait for the receipt. Its customer, operator and
provider run in parallel. The second one is deepgrid's client with one transaction per step of a job. The third one uses
batches. The table also shows where the time went: blocks waited for, and CPU of client and node.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from queue import Queue
from typing import Any, cast

from eth_account.signers.local import LocalAccount
from rich.console import Console
from rich.table import Table
from web3 import HTTPProvider, Web3
from web3.logs import DISCARD

from deepgrid.chain.batches import Report, Request
from deepgrid.chain.client import Chain
from deepgrid.chain.node.values import coded_definition, coded_name
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.states import JobStatus
from tests.chain.anvil import Anvil
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, build, gather_people

LOCKED_WEI = 200 * CREDIT
LIVES = {"naive": 8, "single": 200, "batched": 2000}
BATCH = 100
REPORTS = ((JobStatus.RUNNING, 0), (JobStatus.FINISHED, 1))


@dataclass(frozen=True)
class Run:
    """The result of one client: jobs, seconds, and where the time went."""

    jobs: int
    seconds: float
    blocks: int
    transactions: int
    fullest_block: float  # share of the block's gas limit
    client_cpu_s: float
    node_cpu_s: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


# -- deepgrid's client -----------------------------------------------------------------------


async def single(people: People, jobs: int) -> None:
    """Each step of each job is one transaction. The lives run in parallel."""
    await asyncio.gather(*(_one_life(people) for _ in range(jobs)))


async def _one_life(people: People) -> None:
    job_id = await people.customer.request_job(DEFINITION, LOCKED_WEI, "a job")
    await people.operator.meta_schedule(job_id, people.provider.address)
    claimed = await people.provider.claim_next()
    assert claimed is not None, "the numbers of assigned and claimed jobs differ"
    await people.provider.set_running(claimed.job_id, 0)
    await people.provider.settle(claimed.job_id, JobStatus.FINISHED, 1)


async def batched(people: People, jobs: int) -> None:
    """Each step of BATCH jobs is one transaction. The batches run in parallel."""
    await asyncio.gather(*(_one_batch(people) for _ in range(jobs // BATCH)))


async def _one_batch(people: People) -> None:
    ids = await people.customer.request_jobs([Request(DEFINITION, LOCKED_WEI, "a job")] * BATCH)
    skipped = await people.operator.meta_schedule_jobs([(job_id, people.provider.address) for job_id in ids])
    claimed = await people.provider.claim_next_jobs(BATCH)
    assert len(claimed) == BATCH, "the numbers of assigned and claimed jobs differ"
    for status, minutes in REPORTS:
        skipped += await people.provider.report_jobs([Report(one.job_id, status, minutes) for one in claimed])
    assert not skipped


# -- the naive client ------------------------------------------------------------------------


class Naive:
    """One key and one contract, used as on the first page of web3.py's documentation."""

    def __init__(self, grid: Grid, account: LocalAccount) -> None:
        self.w3 = Web3(HTTPProvider(grid.anvil.url))
        self.account = account
        artifact = json.loads((files("deepgrid.chain") / "compiled" / "MetaScheduler.json").read_text())
        address = self.w3.to_checksum_address(grid.book.meta_scheduler)
        self.contract = self.w3.eth.contract(address=address, abi=artifact["abi"])

    def send(self, function: str, *args: Any) -> Any:
        """Send a call that must succeed, and return its receipt."""
        call = self.contract.functions[function](*args)
        sender = self.account.address
        gas = call.estimate_gas({"from": sender}) * 13 // 10  # without a margin one call in ten runs out of gas
        nonce = self.w3.eth.get_transaction_count(sender)
        transaction = call.build_transaction({"from": sender, "nonce": nonce, "gas": gas})
        signed = self.account.sign_transaction(cast("dict[str, Any]", transaction))
        receipt = self.w3.eth.wait_for_transaction_receipt(self.w3.eth.send_raw_transaction(signed.raw_transaction))
        assert receipt["status"] == 1, function
        return receipt


async def naive(grid: Grid, people: People, jobs: int) -> None:
    """Customer, operator and provider are three programs. Each sends one transaction after another."""
    customer, operator, provider = (Naive(grid, one.sender.wallet.account) for one in _parties(people))
    requested: Queue[bytes] = Queue()
    assigned: Queue[bytes] = Queue()

    def ask() -> None:
        for _ in range(jobs):
            args = (coded_definition(DEFINITION), LOCKED_WEI, coded_name("a job").ljust(32, b"\0"), False)
            receipt = customer.send("requestNewJob", *args)
            (event,) = customer.contract.events.NewJobRequestEvent().process_receipt(receipt, DISCARD)
            requested.put(event["args"]["jobId"])

    def assign() -> None:
        for _ in range(jobs):
            job_id = requested.get()
            operator.send("metaSchedule", job_id, people.provider.address)
            assigned.put(job_id)

    def work() -> None:
        for _ in range(jobs):
            job_id = assigned.get()
            provider.send("claimNextJob")
            for status, minutes in REPORTS:
                provider.send("providerSetJobStatus", job_id, int(status), minutes, "", 0)

    with ThreadPoolExecutor(3) as programs:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(programs, program) for program in (ask, assign, work)))


def _parties(people: People) -> tuple[Writer, Writer, Writer]:
    return people.customer, people.operator, people.provider


# -- measuring -------------------------------------------------------------------------------


async def measure(grid: Grid, people: People, jobs: int, live: Callable[[], Awaitable[None]]) -> Run:
    """Run `jobs` lives with `live` and check that each one ended."""
    chain = people.chain
    first, last_job = (await chain.head()).number, await chain.job_count()
    client_cpu, node_cpu, started = time.process_time(), grid.anvil.cpu_seconds(), time.monotonic()
    await live()
    seconds = time.monotonic() - started
    cpu = time.process_time() - client_cpu, grid.anvil.cpu_seconds() - node_cpu
    done = await chain.jobs(range(last_job + 1, last_job + jobs + 1))
    assert all(job.status is JobStatus.FINISHED for job in done), "a life did not end"
    numbers = range(first + 1, (await chain.head()).number + 1)
    blocks = await chain.rpc.batch([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
    return Run(
        jobs, seconds, len(blocks), sum(len(block["transactions"]) for block in blocks),
        max(int(block["gasUsed"], 16) / int(block["gasLimit"], 16) for block in blocks), *cpu,
    )  # fmt: skip


async def compare(grid: Grid) -> dict[str, Run]:
    async with await Chain.connect(grid.book) as chain:
        people = await gather_people(grid, chain, "bench")
        await people.operator.mint(people.customer.address, 10**9 * CREDIT)
        await people.customer.approve(2**256 - 1)
        grid.anvil.mine_every_second()
        runs = {
            "naive": await measure(grid, people, LIVES["naive"], lambda: naive(grid, people, LIVES["naive"])),
            "single": await measure(grid, people, LIVES["single"], lambda: single(people, LIVES["single"])),
            "batched": await measure(grid, people, LIVES["batched"], lambda: batched(people, LIVES["batched"])),
        }
        await asyncio.gather(*(one.sender.close() for one in _parties(people)))
        return runs


def show(console: Console, runs: dict[str, Run]) -> None:
    slowest = runs["naive"].rate
    rates = Table("client", "lives", "seconds", "lives/s", "ratio", title="Life cycles with one block per second")
    costs = Table("client", "blocks", "transactions", "fullest block", "client CPU/life", "node CPU/life",
                  title="Where the time went")  # fmt: skip
    for name, run in runs.items():
        rates.add_row(name, f"{run.jobs:,}", f"{run.seconds:.1f}", f"{run.rate:.2f}", f"{run.rate / slowest:.0f}")
        cpu = [f"{1000 * seconds / run.jobs:.1f} ms" for seconds in (run.client_cpu_s, run.node_cpu_s)]
        costs.add_row(name, str(run.blocks), f"{run.transactions:,}", f"{run.fullest_block:.0%} of its gas", *cpu)
    console.print(rates, costs)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        anvil = Anvil(Path(folder))
        anvil.start()
        try:
            grid = build(anvil, Path(folder) / "keys")
            runs = asyncio.run(compare(grid))
        finally:
            anvil.stop()
    show(Console(width=100), runs)
    ours, theirs = runs["batched"].rate, runs["naive"].rate
    figures = {"bench": "chain", "life_cycles_per_s": round(ours, 2), "naive_per_s": round(theirs, 3)}
    print(json.dumps({**figures, "ratio": round(ours / theirs, 1), "single_per_s": round(runs["single"].rate, 2)}))


if __name__ == "__main__":
    main()
