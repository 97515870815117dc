"""A customer whose own account may submit no more jobs stops no other customer."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared.claim_room import ClaimRoom


@pytest.mark.attack(
    "more jobs than its account may submit to Slurm", attacker="a customer",
    gain="nothing: the customer's own jobs wait",
    defence="where customers have separate accounts, a limit of one account limits no claims",
)  # fmt: skip
def test_one_customers_limit_stops_no_claims() -> None:
    room = ClaimRoom(lambda: 1, accounts_are_apart=True)
    room.full(JobKey(1, "0x" + "ab" * 20, 7, 1), "Job violates policy (QOSMaxSubmitJobPerUserLimit)")
    assert not room.is_known
