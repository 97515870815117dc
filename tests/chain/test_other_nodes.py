"""Fifty jobs live their life through nodes that lack something, limit us, lag behind, or lose what they had.

The operator, the provider and the customer use the grid's own client code. Each of them acts on what it reads, and
tries again when an error is transient, as the processes of the grid do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from deepgrid.chain.batches import Report, Request
from deepgrid.chain.chain_findings import examine_node
from deepgrid.chain.client import Chain
from deepgrid.chain.node.log_pages import LogPages
from deepgrid.chain.node.node import Node, Rpc
from deepgrid.chain.node.node_errors import NodeRefused
from deepgrid.chain.node.pace import Pace, retry_after_s
from deepgrid.errors import ChainError, ContractError, GridError
from deepgrid.findings import Level
from deepgrid.lifecycle.states import JobStatus
from tests.chain import node_proxy
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, build, gather_people
from tests.chain.hardhat import Hardhat
from tests.chain.node_proxy import Mode, playing

S = JobStatus
JOBS = 50
DEPOSIT_WEI = 100 * CREDIT

T = TypeVar("T")


async def _until_it_works(action: Callable[[], Awaitable[T]]) -> T:
    """Return the result of an action that may be repeated. Transient errors are expected here, others are not."""
    while True:
        try:
            return await action()
        except GridError as error:
            if not error.transient:
                raise
        await asyncio.sleep(0.05)


async def _request(people: People) -> list[int]:
    """Request jobs that are missing: an error does not say whether the chain has the request."""
    me = people.customer
    while True:
        ids = await _until_it_works(lambda: people.chain.jobs_by_customer(me.address))
        if len(ids) == JOBS:
            return ids
        assert not ids
        await _until_it_works(lambda: me.approve(JOBS * DEPOSIT_WEI))
        with suppress(GridError):
            await me.request_jobs([Request(DEFINITION, DEPOSIT_WEI, f"job {number}") for number in range(JOBS)])


async def _settle(people: People, job_id: int) -> None:
    """Settle a job and read it back: the read must show what was just written."""
    try:
        await _until_it_works(lambda: people.provider.settle(job_id, S.FINISHED, 0))
    except ContractError as error:
        if error.name == "SameStatusError":  # the report came through, and its answer did not
            return
        raise
    job = await _until_it_works(lambda: people.chain.job(job_id))
    assert job.status is S.FINISHED


async def _live(people: People, ids: list[int]) -> None:
    """Carry the jobs on, from whatever state the chain shows, until all have ended."""
    chain, operator, provider = people.chain, people.operator, people.provider
    async with asyncio.timeout(600):
        while True:
            jobs = await _until_it_works(lambda: chain.jobs(ids))
            by_state = {state: [job.id for job in jobs if job.status is state] for state in S}
            if len(by_state[S.FINISHED]) == len(ids):
                return
            if pending := by_state[S.PENDING]:
                await _tried(operator.meta_schedule_jobs([(job_id, provider.address) for job_id in pending]))
            if by_state[S.META_SCHEDULED]:
                await _tried(provider.claim_next_jobs(JOBS))
            if scheduled := by_state[S.SCHEDULED]:
                await _tried(provider.report_jobs([Report(job_id, S.RUNNING, 0) for job_id in scheduled]))
            await asyncio.gather(*(_settle(people, job_id) for job_id in by_state[S.RUNNING]))


async def _tried(action: Awaitable[object]) -> None:
    """Wait for an action whose effect is read from the chain afterwards."""
    try:
        await action
    except GridError as error:
        if not error.transient and not isinstance(error, ContractError):
            raise


async def _lives(grid: Grid, mode: Mode) -> Chain:
    """Carry fifty jobs through a node in this mode, and check their bills to the wei through the real node."""
    async with playing(mode) as url:
        book = grid.book.model_copy(update={"rpc_url": url})
        async with await Chain.connect(book) as chain:
            people = await _until_it_works(lambda: gather_people(grid, chain, f"{type(mode).__name__}-{mode.asked}"))
            ids = await _request(people)
            await _live(people, ids)
            history = await _until_it_works(lambda: chain.history(ids[-1]))
            assert [step.after for step in history][-1] is S.FINISHED
            await people.rest()
    async with await Chain.connect(grid.book) as real:
        bills = [await real.settlement(job_id) for job_id in ids]
        assert all(bill is not None for bill in bills)
        assert {bill.paid_wei + bill.cut_wei + bill.refunded_wei for bill in bills if bill} == {DEPOSIT_WEI}
        assert {job.status for job in await real.jobs(ids)} == {S.FINISHED}
    assert mode.played > 0
    return chain


@pytest.mark.parametrize(
    "kind",
    [
        node_proxy.WithoutFees,
        node_proxy.WithoutBatches,
        node_proxy.SmallBatches,
        node_proxy.Busy,
        node_proxy.BusyForASecond,
        node_proxy.Limited,
        node_proxy.SmallRanges,
        node_proxy.LaggingPool,
        node_proxy.DroppedAnswers,
    ],
)
async def test_fifty_jobs_live_through_another_node(grid: Grid, kind: type[Mode]) -> None:
    mode = kind(grid.anvil)
    await _lives(grid, mode)
    if isinstance(mode, node_proxy.Busy):
        assert mode.pause_s is None or mode.early == 0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (node_proxy.WithoutFees, "The node lacks EIP-1559, so"),
        (node_proxy.WithoutBatches, "The node lacks JSON-RPC batches, so"),
        (node_proxy.SmallBatches, "The node lacks batches of more than 3 requests, so"),
        (node_proxy.SmallRanges, "The node lacks logs of more than "),
    ],
)
async def test_the_doctors_say_what_a_node_lacks(grid: Grid, kind: type[Mode], words: str) -> None:
    grid.anvil.mine(20)
    async with playing(kind(grid.anvil)) as url, await Node.at(url) as node:
        (found,) = await examine_node(node, 0)
        assert found.level is Level.WARNING
        assert found.words.startswith(words)
    async with await Node.at(grid.anvil.url) as node:
        assert await examine_node(node, 0) == []


async def test_a_learned_range_is_kept_for_later_reads(grid: Grid) -> None:
    grid.anvil.mine(200)
    mode = node_proxy.SmallRanges(grid.anvil)
    async with playing(mode) as url, await Node.at(url) as node:
        last = (await node.head()).number
        await node.logs(grid.book.meta_scheduler, last - 150, last)
        refused = mode.played
        assert 0 < refused < 10  # one for each halving, not for each page
        await node.logs(grid.book.credit, last - 150, last)
        await node.logs(grid.book.credit, last - 150, None)
        assert mode.played == refused


async def test_too_many_logs_do_not_shorten_later_pages() -> None:
    pages = LogPages()

    async def read(first: int, last: int) -> list[int]:
        if first <= 7 <= last and first < last:
            raise NodeRefused("eth_getLogs", {"code": -32005, "message": "query returned more than 10000 results"})
        return list(range(first, last + 1))

    assert await pages.read(0, 99, read) == list(range(100))
    assert pages.longest is None


@pytest.mark.parametrize(
    ("header", "least_s", "most_s"),
    [("7", 7, 7), (" 0 ", 0, 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("9" * 400, 1e8, 1e9)],
)
def test_retry_after_is_read(header: str, least_s: float, most_s: float) -> None:
    found = retry_after_s(header)
    assert found is not None
    assert least_s <= found <= most_s


@pytest.mark.parametrize("header", [None, "", "soon", "-3", "²", "1.5e9"])
def test_an_unreadable_retry_after_counts_as_none(header: str | None) -> None:
    assert retry_after_s(header) is None


async def test_a_long_retry_after_is_cut() -> None:
    pace = Pace(longest_pause_s=0.05)
    pace.hold(0, 86_400)
    async with asyncio.timeout(20):
        await pace.turn()


async def test_transactions_are_not_repeated_by_the_connection(grid: Grid) -> None:
    """A transaction whose answer was lost may be mined already. Its sender finds that out."""
    mode = AlwaysDropped(grid.anvil)
    async with playing(mode) as url:
        rpc = Rpc(url)
        with pytest.raises(ChainError, match="cannot be reached"):
            await rpc.call("eth_sendRawTransaction", "0x00")
        assert mode.asked == 1
        with pytest.raises(ChainError, match="cannot be reached"):
            await rpc.call("eth_chainId")
        assert mode.asked == 3
        await rpc.close()


class AlwaysDropped(Mode):
    """A node whose answers are all lost."""

    async def answered(self, body: object) -> bool:
        return False


async def test_a_chain_that_went_back_is_believed_after_a_while(own_grid: Grid) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        chain.own_writes.patience_s = 0.3
        chain.own_writes.note(10**6)
        assert await chain.job_count() == 0
        assert chain.own_writes.block < 10**6


async def test_fifty_jobs_live_through_reorganisations(own_grid: Grid) -> None:
    await _lives(own_grid, node_proxy.Reorganising(own_grid.anvil))


@pytest.mark.long
async def test_fifty_jobs_live_on_the_node_of_hardhat(tmp_path: Path) -> None:
    hardhat = Hardhat(tmp_path)
    await asyncio.to_thread(hardhat.start)
    try:
        grid = await asyncio.to_thread(build, hardhat, tmp_path / "keys")
        mode = Mode(hardhat)
        mode.played = 1  # another node by itself
        await _lives(grid, mode)
    finally:
        await asyncio.to_thread(hardhat.stop)
