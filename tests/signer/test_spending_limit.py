"""In any hour a page locks and moves at most the limit, by any combination of calls. No credits count twice."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.signer.limit import WINDOW_S, SpendingLimit
from deepgrid.signer.refused import Refused

LIMIT = 100
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["permit", "grant", "lock", "refused lock", "transfer", "wait"]),
        st.integers(0, LIMIT + 20), st.integers(0, 3),
    ), max_size=60,
)  # fmt: skip


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Account:
    """The actions of a page, with their times."""

    clock: Clock = field(default_factory=Clock)
    gone: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.limit = SpendingLimit(LIMIT, self.clock)

    def do(self, step: str, wei: int, number: int) -> None:
        if step == "wait":
            self.clock.now += wei * 60
        elif step == "permit":
            self.limit.permit(number, wei)
        elif step == "grant":
            self.limit.grant(wei)
        elif step == "refused lock":
            self.limit.lock(wei).undo()
        else:
            (self.limit.lock if step == "lock" else self.limit.transfer)(wei)
            self.gone.append((self.clock.now, wei))

    def gone_within(self, end: float) -> int:
        return sum(wei for at, wei in self.gone if end - WINDOW_S < at <= end)


@given(STEPS)
def test_at_most_the_limit_is_gone_in_any_hour(steps: list[tuple[str, int, int]]) -> None:
    account = Account()
    for step, wei, number in steps:
        with suppress(Refused):
            account.do(step, wei, number)
        assert 0 <= account.limit.left_wei() <= LIMIT
    assert all(account.gone_within(at) <= LIMIT for at, _ in account.gone)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_what_was_allowed_is_locked_for_free(amounts: list[int]) -> None:
    account = Account()
    for nonce, wei in enumerate(amounts):
        account.do("permit", wei, nonce)
    left = account.limit.left_wei()
    for wei in amounts:
        account.do("lock", wei, 0)
        assert account.limit.left_wei() == left
    account.do("wait", 61, 0)
    assert account.limit.left_wei() == LIMIT


def test_an_allowance_of_the_hour_before_is_counted_when_it_is_locked() -> None:
    account = Account()
    account.do("grant", LIMIT, 0)
    account.do("wait", 61, 0)
    account.do("lock", LIMIT, 0)
    with pytest.raises(Refused, match="of the limit of"):
        account.do("lock", 1, 0)
    assert account.limit.left_wei() == 0


def test_a_refused_request_leaves_its_permit_for_the_next() -> None:
    account = Account()
    account.do("permit", LIMIT, 0)
    account.do("refused lock", LIMIT, 0)
    account.do("lock", LIMIT, 0)
    assert account.limit.left_wei() == 0
