"""Credits are locked only for jobs that a cluster can get: they buy the time that the job must get."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.client import InputError
from deepgrid.client.order import Order, Terms, order_of
from deepgrid.client.quotes import Offer, check_reach
from deepgrid.client.repeat.deposit import order_for
from deepgrid.client.workflow import read_workflow
from deepgrid.lifecycle.job import Hardware, Label, Prices, Provider

CREDIT = 10**18
DEAREST = Offer("alpha", "0x1", Decimal(1), Decimal(60))


async def order(credits: int, least: int = 1, ceiling: int | None = None) -> Order:
    workflow = await read_workflow({"resources": RESOURCES, "steps": [{"run": {"command": "true"}}]})
    return order_of(workflow, credits * CREDIT, "job", Terms(min_minutes=least, max_rate_wei=ceiling))


def clusters(*rates: int) -> list[Provider]:
    """Approved clusters with these prices of a CPU minute, in credits. The job takes one CPU."""
    hardware = Hardware((0,), (16,), (64_000,))
    return [Provider(f"0x{rate}", hardware, Prices(0, rate * CREDIT, 0), (), True, False) for rate in rates]


RESOURCES = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 100, "gpus": 0}


async def test_credits_that_buy_too_little_at_each_cluster_are_refused() -> None:
    short = await order(60, least=240)
    with pytest.raises(InputError, match=r"buy 30 minutes at the cheapest cluster.* 240.*Lock at least 480 credits"):
        check_reach(short, clusters(2, 3))
    check_reach(short, [])  # nothing is known of prices
    check_reach(await order(480, least=240), clusters(2, 3))
    check_reach(short.with_ceiling(CREDIT // 4), clusters(2, 3))  # it waits until a cluster is cheaper


async def test_a_cluster_with_too_few_gpus_of_the_wanted_type_does_not_count() -> None:
    content = {"resources": RESOURCES | {"gpus": 2}, "steps": [{"run": {"command": "true"}}]}
    wanted = order_of(
        await read_workflow(content), 100 * CREDIT, "job", Terms.of(affinities=["gpu.a100>=1"], min_time="60m")
    )
    few, enough = (
        Provider(f"0x{rate}", Hardware((4,), (16,), (64_000,)), Prices(0, rate * CREDIT, 0), labels, True, False)
        for rate, labels in ((1, (Label("gpu.a100", "1"),)), (2, (Label("gpu.a100", "4"),)))
    )
    assert [one.address for one, _ in wanted.fitting([few, enough])] == ["0x2"]
    with pytest.raises(InputError, match="buy 50 minutes at the cheapest cluster"):
        check_reach(wanted, [few, enough])


async def test_the_time_of_a_deposit_is_no_shorter_than_the_least_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quoted(*_: object) -> Any:
        return SimpleNamespace(offers=(DEAREST,))

    async def constants() -> Any:
        return SimpleNamespace(minimum_wei=1)

    monkeypatch.setattr("deepgrid.client.quotes.quote_for", quoted)
    connection: Any = SimpleNamespace(reads=SimpleNamespace(constants=constants))
    kept = await order(240, least=240, ceiling=0)
    with pytest.raises(InputError, match="The time is 1 hour, but the job must get at least 4 hours"):
        await order_for(connection, kept, 60)
    made, _ = await order_for(connection, kept.with_least(60), 60)
    assert (made.locked_wei, made.terms.min_minutes) == (60 * CREDIT, 60)
