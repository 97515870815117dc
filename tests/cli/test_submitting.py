"""`dps submit` on a real chain with real services; the tests play provider and operator."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.chain.grid import pass_a_second
from tests.cli.live import CREDIT, EXAMPLE, Dps, Live, Party, Wire, finished

SUBMITTED = re.compile(r"^job (\d+) submitted$", re.MULTILINE)


def _id(out: str) -> int:
    found = SUBMITTED.search(out)
    assert found is not None, out
    return int(found[1])


async def _only_job(chain: Chain, dps: Dps) -> int:
    """Return the number of the customer's job, as soon as there is one."""
    address = Wallet.load(dps.key).address
    async with asyncio.timeout(60):
        while not (ids := await chain.jobs_by_customer(address)):
            await asyncio.sleep(0.05)
    return ids[0]


async def _carry(chain: Chain, job_id: int, operator: Party, provider: Party, end: JobStatus, wait_status: int) -> None:
    """Carry the job as the meta-scheduler and the provider do."""
    await operator.writer.meta_schedule(job_id, provider.address)
    await operator.services.post_notice(job_id, "assigned", "alpha is the cheapest")
    claimed = await provider.writer.claim_next()
    assert claimed is not None and claimed.job_id == job_id
    await provider.writer.set_running(job_id, 0)
    await pass_a_second(chain)
    offset = await push_log(provider.services, job_id, 0, b"Hello\r\n10%\r100%\n\x1b[2Jbye")
    await provider.writer.settle(job_id, end, 1, "", wait_status)
    await push_log(provider.services, job_id, offset, b"", final=True)


async def test_submit_stores_the_definition_and_leaves_no_allowance(dps: Dps, chain: Chain) -> None:
    outcome = await dps.run("submit", EXAMPLE, "--credits", "100", "--uses", "os=linux", "--affinities", "cpus>=2")
    assert (outcome.status, outcome.err) == (0, "")
    job = await chain.job(_id(outcome.out))
    address = Wallet.load(dps.key).address
    assert (job.customer, job.name, job.locked_wei, job.status) == (
        address,
        "hello-world",
        100 * CREDIT,
        JobStatus.PENDING,
    )
    assert [label.key for label in job.definition.uses] == ["os"]
    assert [wanted.op for wanted in job.definition.affinity] == [">="]
    assert not job.delegate_spending
    assert (await chain.allowance(address), await chain.balance(address)) == (0, 900 * CREDIT)


async def test_watch_shows_the_life_the_output_and_the_bill_and_exits_with_the_jobs_status(
    dps: Dps, chain: Chain, operator: Party, provider: Party
) -> None:
    running = await dps.start("submit", EXAMPLE, "--credits", "200", "--job-name", "watched", "-w", "-e")
    job_id = await _only_job(chain, dps)
    await _carry(chain, job_id, operator, provider, JobStatus.FAILED, 768)
    outcome = await finished(running)
    assert (outcome.status, outcome.err) == (3, "")
    shown = [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in outcome.out.splitlines()]
    states = [line.split("  ")[0] for line in shown if line.split("  ")[0].isupper()]
    assert states == ["PENDING", "META-SCHEDULED", "SCHEDULED", "RUNNING", "FAILED"]
    assert [line for line in shown if line.startswith("| ")] == ["| Hello", "| 10%", "| 100%", "| bye"]
    assert "assigned: alpha is the cheapest" in shown
    assert shown.index("| bye") < next(at for at, line in enumerate(shown) if line.startswith("FAILED"))
    assert "exit status 3" in outcome.out
    settlement = await chain.settlement(job_id)
    assert settlement is not None
    assert settlement.paid_wei + settlement.cut_wei + settlement.refunded_wei == 200 * CREDIT
    for transition in await chain.history(job_id):
        assert transition.tx_hash in outcome.out
    assert re.search(r"rate +0\.628 credits per minute", outcome.out)
    assert re.search(r"refund +199\.372$", outcome.out, re.MULTILINE)


async def test_without_timestamps_the_output_is_as_the_job_wrote_it(
    dps: Dps, chain: Chain, operator: Party, provider: Party
) -> None:
    running = await dps.start("submit", EXAMPLE, "--credits", "100", "--watch", "--no-ts")
    await _carry(chain, await _only_job(chain, dps), operator, provider, JobStatus.OUT_OF_CREDITS, 0)
    outcome = await finished(running)
    assert outcome.status == 0
    assert {"Hello", "10%", "100%", "bye"} <= set(outcome.out.splitlines())
    assert "OUT OF CREDITS" in outcome.out


async def test_watching_says_why_a_job_waits_and_what_remains_after_an_interruption(
    dps: Dps, chain: Chain, operator: Party
) -> None:
    running = await dps.start("submit", EXAMPLE, "--credits", "100", "--watch")
    job_id = await _only_job(chain, dps)
    await operator.services.post_notice(job_id, "waiting", "no cluster has 100 GPUs")
    assert running.stdout is not None
    seen = b""
    async with asyncio.timeout(60):
        while b"waiting: no cluster has 100 GPUs" not in seen:
            seen += await running.stdout.readline()
    running.send_signal(signal.SIGINT)
    outcome = await finished(running)
    assert outcome.status == 130
    assert f"job {job_id} continues" in outcome.err and f"dps job cancel {job_id}" in outcome.err
    assert (await chain.job(job_id)).status is JobStatus.PENDING


async def test_watching_outlives_an_outage_of_node_and_services(
    live: Live, dps: Dps, chain: Chain, operator: Party, provider: Party, tmp_path: Path
) -> None:
    book = live.address_book()
    async with Wire(book.rpc_url) as node, Wire(book.definitions_url) as services:
        changes = {"rpc_url": node.url, "definitions_url": services.url}
        file = book.model_copy(update=changes).save(tmp_path / "wired.json")
        running = await dps.start("submit", EXAMPLE, "--credits", "100", "--watch", "--book", file)
        assert running.stdout is not None
        seen = b""
        async with asyncio.timeout(60):
            while b"PENDING" not in seen:
                seen += await running.stdout.readline()
            await asyncio.gather(node.cut(), services.cut())
            while b"waiting for the chain" not in seen or b"cannot be read at the moment" not in seen:
                seen += await running.stdout.readline()
        await asyncio.gather(node.mend(), services.mend())
        await _carry(chain, await _only_job(chain, dps), operator, provider, JobStatus.FINISHED, 0)
        outcome = await finished(running)
    assert outcome.status == 0
    assert outcome.out.count("| Hello") == 1
    assert (seen.decode() + outcome.out).count("waiting for the chain") == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--credits", "5"), "dps: 5 credits are too few. Lock at least 100."),
        (("--credits-wei", str(100 * CREDIT - 1)), "Lock at least 100."),
        (("--credits", "1001"), "has 1000. Lock fewer, or get more credits."),
        (("--credits", "100", "--no-approve"), "Run `dps allowance set 100`, or omit --no-approve."),
    ],
)
async def test_too_few_credits_are_refused_before_anything_is_sent(
    dps: Dps, chain: Chain, options: tuple[str, ...], complaint: str
) -> None:
    outcome = await dps.run("submit", EXAMPLE, *options)
    assert outcome.status == 2
    assert complaint in outcome.err and outcome.err.count("\n") == 1
    address = Wallet.load(dps.key).address
    assert await chain.jobs_by_customer(address) == []
    assert (await chain.allowance(address), await chain.balance(address)) == (0, 1000 * CREDIT)


async def test_an_allowance_that_stands_is_used_and_not_changed(dps: Dps, chain: Chain) -> None:
    address = Wallet.load(dps.key).address
    assert (await dps.run("allowance", "set", "250")).status == 0
    assert (await dps.run("submit", EXAMPLE, "--credits", "100", "--no-approve")).status == 0
    assert await chain.allowance(address) == 150 * CREDIT
    assert (await dps.run("submit", EXAMPLE, "--credits", "100", "--delegate-spending")).status == 0
    assert await chain.allowance(address) == 50 * CREDIT
    assert (await dps.run("submit", EXAMPLE, "--credits", "100")).status == 0
    assert await chain.allowance(address) == 0
    jobs = await chain.jobs(await chain.jobs_by_customer(address))
    assert [job.delegate_spending for job in jobs] == [False, True, False]


async def test_two_submissions_of_one_key_at_once_both_succeed(dps: Dps, chain: Chain) -> None:
    outcomes = await asyncio.gather(*(dps.run("submit", EXAMPLE, "--credits", "100") for _ in range(2)))
    assert [outcome.status for outcome in outcomes] == [0, 0], outcomes
    assert len({_id(outcome.out) for outcome in outcomes}) == 2
    assert await chain.allowance(Wallet.load(dps.key).address) == 0


async def test_services_that_are_down_and_a_wrong_chain(live: Live, dps: Dps, chain: Chain, tmp_path: Path) -> None:
    book: AddressBook = live.address_book()
    dead = {"definitions_url": "http://127.0.0.1:1", "logs_url": "http://127.0.0.1:1"}
    for number, (changes, complaint) in enumerate(((dead, "do not answer"), ({"chain_id": 5}, "Wrong chain"))):
        file = book.model_copy(update=changes).save(tmp_path / f"{number}.json")
        outcome = await dps.run("submit", EXAMPLE, "--credits", "100", "--book", file)
        assert (outcome.status, outcome.out) == (2, "")
        assert complaint in outcome.err and outcome.err.count("\n") == 1
    assert await chain.allowance(Wallet.load(dps.key).address) == 0
