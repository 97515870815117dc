"""Ten minutes before bought time ends the customer is told: in the log of the job, and by a notice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.errors import ChainError
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.money_end import MoneyEnd
from tests.lifecycle.support import seen

RATE, SLICE, STARTED = 10**18, 30, 1_800_000_000
BOUGHT = 60  # minutes


@dataclass
class Session:
    """A session, its chain and its logs in one: the customer's allowance, and what the customer was told."""

    funds: int = 0
    limit: int = 10**30
    down: bool = False
    lines: list[str] = field(default_factory=list)
    notices: list[tuple[int, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chain = self.logs = self

    def say(self, _key: JobKey, text: str) -> None:
        self.lines.append(text)

    async def explain(self, job_id: int, kind: str, text: str) -> None:
        self.notices.append((job_id, kind, text))

    async def constants(self) -> Any:
        if self.down:
            raise ChainError("The node does not answer.")
        return SimpleNamespace(top_up_slice_minutes=SLICE)

    async def allowance(self, _customer: str) -> int:
        return self.funds

    async def balance(self, _customer: str) -> int:
        return 10**30

    async def spendable(self, job_ids: list[int]) -> dict[int, int]:
        return dict.fromkeys(job_ids, self.limit)


def running(left_s: int, *, bought: int = BOUGHT, delegate: bool = False) -> Observation:
    """Return the observation of a running job whose bought time ends in `left_s` seconds."""
    slurm = SlurmJob(Phase.RUNNING, 9, "RUNNING", STARTED)
    found = seen(JobStatus.RUNNING, slurm, rate_wei_per_minute=RATE, granted_minutes=bought, delegate_spending=delegate)
    return replace(found, now=STARTED + 60 * bought - left_s)


@pytest.fixture
def session() -> Session:
    return Session()


async def test_the_customer_is_told_once_ten_minutes_before(session: Session) -> None:
    watch = MoneyEnd(session)  # type: ignore[arg-type]
    await watch.observed(running(601))
    assert session.notices == []
    for left_s in (600, 500, 1):
        await watch.observed(running(left_s))
    text = "the bought time ends at 2027-01-15 09:00 UTC; `dps job topup 7 --time 1h` buys more"
    assert (session.lines, session.notices) == ([text], [(7, "money-ending", text)])
    await watch.observed(running(600, bought=90))
    assert len(session.notices) == 2, "a later end is told too"


async def test_a_job_that_the_grid_tops_up_says_how_long_the_allowance_lasts(session: Session) -> None:
    watch = MoneyEnd(session)  # type: ignore[arg-type]
    session.funds = 5 * SLICE * RATE + 7
    await watch.observed(running(600, delegate=True))
    assert session.lines[0].endswith("the grid buys more, as you allowed: 150 more minutes at most")
    await watch.observed(running(600, bought=90, delegate=True))
    assert len(session.lines) == 1, "it lasts for more than an hour"
    session.funds = SLICE * RATE
    await watch.observed(running(600, bought=120, delegate=True))
    assert session.lines[1].endswith("as you allowed: 30 more minutes at most")
    session.funds = SLICE * RATE - 1
    await watch.observed(running(600, bought=150, delegate=True))
    assert session.lines[2].endswith("the limit of this job with `dps job auto-top-up 7 --limit CREDITS`")
    session.funds, session.limit = 10**30, SLICE * RATE + 3 * RATE + 1
    await watch.observed(running(600, bought=180, delegate=True))
    assert session.lines[3].endswith(f"as you allowed: {SLICE + 3} more minutes at most"), (
        "the rest of the limit counts"
    )


async def test_an_outage_of_the_chain_only_delays_it(session: Session) -> None:
    watch = MoneyEnd(session)  # type: ignore[arg-type]
    session.down = True
    await watch.observed(running(600, delegate=True))
    assert session.lines == []
    session.down = False
    await watch.observed(running(590, delegate=True))
    assert len(session.lines) == 1


@pytest.mark.parametrize("phase", [Phase.QUEUED, Phase.ENDED, Phase.ABSENT])
async def test_only_running_jobs_with_a_price_are_told(session: Session, phase: Phase) -> None:
    watch = MoneyEnd(session)  # type: ignore[arg-type]
    await watch.observed(replace(running(1), slurm=SlurmJob(phase, 9, started_at=STARTED)))
    free = running(1)
    await watch.observed(replace(free, job=replace(free.job, rate_wei_per_minute=0)))
    assert session.lines == []
