"""Past use by ended jobs: its decay, and the wait after too many cancels."""

from __future__ import annotations

import pytest

from deepgrid.scheduling.market import Resources, SchedulerSettings
from deepgrid.scheduling.past_use import FIRST_WAIT_S, LONGEST_WAIT_S, Account, Hold, usage_at
from tests.scheduling.markets import NOW

DAY_S = 86_400
SETTINGS = SchedulerSettings(half_life_s=DAY_S)


def hold(since: int = NOW, cpus: int = 80) -> Hold:
    return Hold("0xa", Resources(cpus, cpus / 10, 4), since)


def past(account: Account, now: int, *holds: Hold) -> Resources:
    return usage_at(now, {"0xa": account}, holds, SETTINGS).past["0xa"]


def after_cancels(count: int, pause_s: int = 10) -> Account:
    """Return the account of a customer that cancels each job three seconds after its assignment."""
    account = Account()
    for number in range(count):
        since = NOW + number * pause_s
        account = account.with_cancel(hold(since), since + 3, DAY_S)
    return account


def test_use_of_one_half_life_ago_counts_half() -> None:
    assert past(Account(Resources(80, 8, 4), NOW), NOW + DAY_S) == Resources(40, 4, 2)


def test_the_average_approaches_what_is_in_use() -> None:
    assert past(Account(), NOW + 30 * DAY_S, hold()).cpus == pytest.approx(80, rel=1e-6)
    ended = Account().with_hold(hold(), NOW + 30 * DAY_S, DAY_S)
    assert ended.is_negligible(NOW + 90 * DAY_S, DAY_S)
    assert not ended.is_negligible(NOW + 31 * DAY_S, DAY_S)


def test_a_job_counts_the_same_while_it_runs_and_after_its_end() -> None:
    ended = Account().with_hold(hold(), NOW + 600, DAY_S)
    assert past(ended, NOW + 600) == pytest.approx(past(Account(), NOW + 600, hold()))
    later = past(Account(), NOW + 1200, hold()).cpus - past(Account(), NOW + 1200, hold(NOW + 600)).cpus
    assert past(ended, NOW + 1200).cpus == pytest.approx(later)


def test_the_order_of_the_ends_does_not_matter() -> None:
    one, two = (hold(), NOW + 600), (hold(NOW - 50, 7), NOW + 300)
    both = [Account().with_hold(*first, DAY_S).with_hold(*then, DAY_S) for first, then in ((one, two), (two, one))]
    assert both[0].past == pytest.approx(both[1].past)


def test_a_few_cancels_are_free_and_each_further_one_doubles_the_wait() -> None:
    free = SETTINGS.free_cancels
    waits = []
    for count in range(free, free + 4):
        account = after_cancels(count)
        until = account.waits_until(free)
        waits.append(until - account.cancelled_at if until else 0)
    assert waits == [0, FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S]
    account = after_cancels(5000)
    assert account.waits_until(free) == account.cancelled_at + LONGEST_WAIT_S


def test_cancels_are_forgotten_with_time() -> None:
    account = after_cancels(SETTINGS.free_cancels + 1)
    since = account.cancelled_at + DAY_S
    assert account.with_cancel(hold(since), since + 3, DAY_S).waits_until(SETTINGS.free_cancels) == 0


def test_jobs_that_are_cancelled_together_count_as_one_cancel() -> None:
    account = Account()
    for number in range(100):
        account = account.with_cancel(hold(NOW + number), NOW + 200 + number, DAY_S)
    assert account.cancels == 1
