"""The meta-scheduler posts the notices of a round in one request: all or none. No other account may do so."""

from __future__ import annotations

import pytest

from deepgrid.errors import AccessDenied, InputError, NotFound
from deepgrid.services.admission import Limits
from deepgrid.services.messages import MAX_NOTICE_CHARS, MAX_NOTICES_AT_ONCE
from tests.services.support import ACCOUNTS, Grid, Start

NAME = "0" * 64


def put(grid: Grid, jobs: int) -> None:
    for job_id in range(1, jobs + 1):
        grid.chain.put(job_id, NAME)


async def said(grid: Grid, job_id: int) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in await grid.customer.notices(job_id)]


async def test_one_request_holds_the_notices_of_many_jobs(grid: Grid) -> None:
    put(grid, MAX_NOTICES_AT_ONCE)
    longest = "\U0001f600" * MAX_NOTICE_CHARS
    await grid.operator.post_notices([(job_id, "waiting", longest) for job_id in range(1, MAX_NOTICES_AT_ONCE + 1)])
    await grid.operator.post_notices([(2, "assigned", "cheapest"), (1, "waiting", "full"), (1, "assigned", "free")])
    assert await said(grid, 1) == [("waiting", longest), ("waiting", "full"), ("assigned", "free")]
    assert await said(grid, 2) == [("waiting", longest), ("assigned", "cheapest")]
    (notice,) = await grid.customer.notices(MAX_NOTICES_AT_ONCE)
    assert notice.author == ACCOUNTS["operator"].address


async def test_a_repeated_notice_adds_nothing_so_a_batch_may_be_sent_again(grid: Grid) -> None:
    put(grid, 2)
    await grid.provider.post_notice(1, "refused", "the disk is full")
    batch = [(1, "waiting", "a"), (2, "waiting", "a"), (1, "waiting", "a"), (1, "waiting", "b")]
    for _ in range(2):
        await grid.operator.post_notices(batch)
    assert await said(grid, 2) == [("waiting", "a")]
    assert (await said(grid, 1))[:3] == [("refused", "the disk is full"), ("waiting", "a"), ("waiting", "b")]


async def test_the_oldest_notices_of_each_job_are_deleted_first(start: Start) -> None:
    grid = await start(limits=Limits(notices_per_job=3))
    put(grid, 2)
    await grid.operator.post_notices([(1, "waiting", text) for text in "abcde"] + [(2, "waiting", "other job")])
    assert await said(grid, 1) == [("waiting", text) for text in "cde"]
    assert await said(grid, 2) == [("waiting", "other job")]


async def test_only_the_meta_scheduler_posts_batches(grid: Grid) -> None:
    put(grid, 1)
    for stranger in (grid.customer, grid.provider, grid.rival):
        with pytest.raises(AccessDenied, match="METASCHEDULER_ROLE"):
            await stranger.post_notices([(1, "waiting", "forged")])
    assert await said(grid, 1) == []


async def test_a_batch_is_stored_whole_or_not_at_all(grid: Grid) -> None:
    put(grid, 1)
    with pytest.raises(NotFound, match="no job 2"):
        await grid.operator.post_notices([(1, "waiting", "a"), (2, "waiting", "no such job")])
    for wrong in ([], [(1, "two words", "x")], [(1, "waiting", "x")] * (MAX_NOTICES_AT_ONCE + 1)):
        with pytest.raises(InputError):
            await grid.operator.post_notices(wrong)
    assert await said(grid, 1) == []
