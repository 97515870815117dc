"""The order of the logs gives the purpose of a transfer, even if one transaction makes many calls."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from deepgrid.billing.entries import Purpose
from deepgrid.chain.node.contract import Event, interface
from deepgrid.chain.node.values import coded_id
from deepgrid.chain.purposes import top_up_of, with_own_deposits, with_purposes
from tests.lifecycle.support import JOB

CONTRACT, ALICE, BOB = "0xContract", "0xAlice", "0xBob"
_index = count()


def log(name: str, tx: str = "0x1", **args: Any) -> Event:
    return Event(name, args, block=1, block_hash="0xb", tx_hash=tx, log_index=next(_index))


def moved(payer: str, payee: str, wei: int, tx: str = "0x1") -> Event:
    return log("Transfer", tx, **{"from": payer, "to": payee, "value": wei})


def created(job_id: int) -> Event:
    return log("JobCreated", jobId=coded_id(job_id))


def settled(job_id: int, provider: str, customer: str, paid: int, refunded: int) -> Event:
    args = {"jobId": coded_id(job_id), "provider": provider, "customer": customer, "paid": paid, "refunded": refunded}
    return log("JobSettledEvent", **args)


def purposes(logs: list[Event], top_ups: dict[str, int] | None = None) -> list[tuple[Purpose, int | None, int]]:
    others = [one for one in logs if one.name != "Transfer"]
    transfers = [one for one in logs if one.name == "Transfer"]
    return [(one.purpose, one.job_id, one.wei) for one in with_purposes(others, transfers, CONTRACT, top_ups or {})]


def test_many_calls_of_one_transaction_keep_their_purposes() -> None:
    logs = [
        moved(ALICE, CONTRACT, 10), created(1), moved(ALICE, CONTRACT, 20), created(2),
        settled(3, BOB, ALICE, 7, 3), moved(CONTRACT, BOB, 7), moved(CONTRACT, ALICE, 3),
        settled(4, BOB, ALICE, 0, 5), moved(CONTRACT, ALICE, 5),
    ]  # fmt: skip
    assert purposes(logs) == [
        (Purpose.DEPOSIT, 1, 10), (Purpose.DEPOSIT, 2, 20), (Purpose.PAID, 3, 7), (Purpose.REFUND, 3, 3),
        (Purpose.REFUND, 4, 5),
    ]  # fmt: skip


def test_a_provider_may_be_its_own_customer() -> None:
    logs = [settled(1, ALICE, ALICE, 7, 3), moved(CONTRACT, ALICE, 7), moved(CONTRACT, ALICE, 3)]
    assert purposes(logs) == [(Purpose.PAID, 1, 7), (Purpose.REFUND, 1, 3)]


def test_a_release_comes_before_the_refund() -> None:
    released = log("CancelReleasedEvent", jobId=coded_id(1), customer=ALICE, released=4, held=6, heldUntil=9)
    logs = [released, moved(CONTRACT, ALICE, 4), settled(1, BOB, ALICE, 0, 6), moved(CONTRACT, ALICE, 6)]
    assert purposes(logs) == [(Purpose.RELEASE, 1, 4), (Purpose.REFUND, 1, 6)]


def test_an_unexplained_transfer_is_stray_unless_it_tops_up_a_job() -> None:
    logs = [moved(ALICE, CONTRACT, 5, tx="0x5"), moved(BOB, CONTRACT, 6, tx="0x6")]
    assert purposes(logs, {"0x6": 9}) == [(Purpose.STRAY, None, 5), (Purpose.TOP_UP, 9, 6)]


def test_a_payment_without_a_settlement_is_a_withdrawal() -> None:
    assert purposes([moved(CONTRACT, BOB, 5)]) == [(Purpose.WITHDRAWAL, None, 5)]


def test_call_data_names_the_job_that_is_topped_up() -> None:
    scheduler = interface("MetaScheduler")
    by_hand = scheduler.encode("topUpJob", coded_id(7), 3)
    automatic = scheduler.encode("topUpJobDelegate", coded_id(8))
    assert top_up_of(CONTRACT.upper(), by_hand, CONTRACT) == 7
    assert top_up_of(CONTRACT, automatic, CONTRACT) == 8
    assert top_up_of(BOB, by_hand, CONTRACT) is None
    assert top_up_of(None, by_hand, CONTRACT) is None
    assert top_up_of(CONTRACT, scheduler.encode("cancelJob", coded_id(7)), CONTRACT) is None


def test_one_transfer_for_a_batch_becomes_a_deposit_per_job() -> None:
    """The books of sweeps once gave the whole transfer to the first job, and all of them differed."""
    logs = [moved(ALICE, CONTRACT, 60), created(1), created(2), created(3), moved(BOB, CONTRACT, 5), created(4)]
    events, transfers = [one for one in logs if one.name != "Transfer"], [logs[0], logs[4]]
    found = with_purposes(events, transfers, CONTRACT, {})

    def deposits(locked: dict[int, int]) -> list[tuple[int | None, int]]:
        jobs = {job_id: replace(JOB, id=job_id, locked_wei=wei) for job_id, wei in locked.items()}
        return [(one.job_id, one.wei) for one in with_own_deposits(found, events, jobs)]

    assert deposits({1: 10, 2: 20, 3: 30, 4: 5}) == [(1, 10), (2, 20), (3, 30), (4, 5)]
    assert deposits({1: 10, 2: 20, 3: 29, 4: 5}) == [(1, 11), (2, 20), (3, 29), (4, 5)], "what is too much shows"
    assert deposits({1: 10, 2: 20, 3: 31, 4: 5}) == [(1, 10), (2, 20), (3, 30), (4, 5)], "what is missing shows"
    assert deposits({2: 20}) == [(1, 40), (2, 20), (4, 5)], "the rest belongs to jobs of others"


def test_credits_sent_before_a_batch_are_no_deposit_of_its_jobs() -> None:
    """A customer's own contract may send credits and request jobs in one transaction. That stopped all books."""
    logs = [moved(ALICE, CONTRACT, 7), moved(ALICE, CONTRACT, 60), created(1), created(2), created(3)]
    events, transfers = logs[2:], logs[:2]
    for top_ups, first in (({}, (Purpose.STRAY, None, 7)), ({"0x1": 9}, (Purpose.TOP_UP, 9, 7))):
        found = with_purposes(events, transfers, CONTRACT, top_ups)
        jobs = {job_id: replace(JOB, id=job_id, locked_wei=20) for job_id in (1, 2, 3)}
        shared = [(one.purpose, one.job_id, one.wei) for one in with_own_deposits(found, events, jobs)]
        assert sorted(shared, key=str) == sorted([first, *((Purpose.DEPOSIT, n, 20) for n in (1, 2, 3))], key=str)
