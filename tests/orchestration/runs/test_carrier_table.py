"""The table of carriers: the code and the page of the architecture say the same, and nothing is carried twice."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import AwaitingRetry, Cancelled, Cancelling, Completed, Crashed, Failed, Pending, Running, Scheduled

from orchestration.runs.carrier_table import Carrier, Claim, Run, Step, Wait, decide, state_of

PAGE = Path(__file__).parents[3] / "docs/explanation/architecture.md"
HEADER = "| carrier | claim | " + " | ".join(Run) + " |"
POSSIBLE = [
    *product([Carrier.RUN], [Claim.OPEN, Claim.OVER]),
    *product([Carrier.FORMER], [Claim.NONE, Claim.UNREAD]),
    *product([Carrier.FALLBACK, Carrier.NONE], [Claim.OPEN, Claim.OVER]),
]


def test_the_page_shows_the_table() -> None:
    rows = [_row(carrier, claim) for carrier, claim in POSSIBLE]
    assert "\n".join([HEADER, "|---" * (2 + len(Run)) + "|", *rows]) in PAGE.read_text()


def _row(carrier: Carrier, claim: Claim) -> str:
    cells = []
    for run in Run:
        step, wait = decide(claim, run, carrier)
        cells.append(f"{step}, {wait}" if wait is not Wait.NOT else str(step))
    return f"| {carrier} | {claim} | " + " | ".join(cells) + " |"


@pytest.mark.parametrize("run", Run)
def test_a_run_that_comes_or_carries_is_left_alone(run: Run) -> None:
    for claim in Claim:
        assert decide(claim, run, Carrier.RUN).step is Step.LEAVE
    for claim, carrier in product(Claim, Carrier):
        waits = (claim, carrier) == (Claim.OPEN, Carrier.NONE)  # such as for a pool that is paused
        assert decide(claim, Run.SCHEDULED, carrier).step is (Step.CARRY if waits else Step.LEAVE)


@pytest.mark.parametrize("run", [run for run in Run if run is not Run.SCHEDULED])
def test_no_open_claim_stays_without_a_run(run: Run) -> None:
    for carrier in (Carrier.NONE, Carrier.FALLBACK):
        assert decide(Claim.OPEN, run, carrier).step in (Step.CREATE, Step.SCHEDULE)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (Scheduled(), Run.SCHEDULED), (AwaitingRetry(), Run.SCHEDULED), (Pending(), Run.PENDING),
        (Running(), Run.RUNNING), (Cancelling(), Run.CANCELLING), (Crashed(), Run.CRASHED), (Failed(), Run.ENDED),
        (Cancelled(), Run.ENDED), (Completed(), Run.COMPLETED), (None, Run.CRASHED),
    ],
    ids=str,
)  # fmt: skip
def test_states_of_prefect_have_a_column(state: State | None, expected: Run) -> None:
    assert state_of(FlowRun.model_construct(state=state)) is expected
    assert state_of(None) is Run.MISSING
