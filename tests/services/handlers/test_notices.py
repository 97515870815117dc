"""The meta-scheduler and the providers of a job may post notices on it; all parties may read them."""

from __future__ import annotations

import pytest

from deepgrid.errors import AccessDenied, InputError, NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits
from tests.services.support import ACCOUNTS, Grid, Start

NAME = "0" * 64


async def test_operator_provider_and_refuser_post_and_all_read(grid: Grid) -> None:
    grid.chain.put(1, NAME, last_refuser=ACCOUNTS["other_provider"].address)
    await grid.operator.post_notice(1, "waiting", "no cluster has 100,000 CPUs")
    await grid.other_provider.post_notice(1, "refused", "the partition is drained")
    await grid.provider.post_notice(1, "refused", "disk full")
    said = [(n.author, n.kind, n.text) for n in await grid.rival.notices(1)]
    assert said == [
        (ACCOUNTS["operator"].address, "waiting", "no cluster has 100,000 CPUs"),
        (ACCOUNTS["other_provider"].address, "refused", "the partition is drained"),
        (ACCOUNTS["provider"].address, "refused", "disk full"),
    ]
    assert all(abs(n.at - grid.clock()) < 60 for n in await grid.rival.notices(1))
    assert await grid.rival.notices(2) == []


async def test_other_parties_may_not_post_notices(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.PENDING, provider=None)
    for stranger in (grid.customer, grid.rival, grid.provider):
        with pytest.raises(AccessDenied, match="has no part"):
            await stranger.post_notice(1, "waiting", "forged")
    with pytest.raises(NotFound):
        await grid.operator.post_notice(2, "waiting", "no such job")
    assert await grid.customer.notices(1) == []


async def test_a_repeated_notice_adds_nothing(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    for text in ("a", "a", "b", "b", "a"):
        await grid.operator.post_notice(1, "waiting", text)
    assert [n.text for n in await grid.customer.notices(1)] == ["a", "b", "a"]


async def test_the_oldest_notices_are_deleted_first(start: Start) -> None:
    grid = await start(limits=Limits(notices_per_job=3))
    grid.chain.put(1, NAME)
    grid.chain.put(2, NAME)
    await grid.operator.post_notice(2, "waiting", "other job")
    for text in "abcde":
        await grid.operator.post_notice(1, "waiting", text)
    assert [n.text for n in await grid.customer.notices(1)] == ["c", "d", "e"]
    assert [n.text for n in await grid.customer.notices(2)] == ["other job"]


async def test_a_notice_is_one_plain_line(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await grid.operator.post_notice(1, "waiting", "sbatch:\n error\x1b[2J \u202e" + "x" * 600)
    (notice,) = await grid.customer.notices(1)
    assert notice.text.startswith("sbatch: error [2J xxx")
    assert len(notice.text) <= 500
    for kind, text in (("two words", "x"), ("", "x"), ("waiting", ""), ("waiting", " \n ")):
        with pytest.raises(InputError):
            await grid.operator.post_notice(1, kind, text)
