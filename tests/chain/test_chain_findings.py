"""The finding on gas money: the number of a role's operations that it pays for at twice the price of gas."""

from __future__ import annotations

import pytest

from deepgrid.chain.chain_findings import LOW_GAS_UNITS, OPERATOR_GAS, PROVIDER_GAS, GasUse, judge_gas
from deepgrid.findings import Level

GWEI = 10**9


@pytest.mark.parametrize("use", [PROVIDER_GAS, OPERATOR_GAS])
def test_gas_money_is_judged_by_the_work_it_pays_for(use: GasUse) -> None:
    enough = LOW_GAS_UNITS * 2 * GWEI * use.gas_per_unit
    assert judge_gas(use, "0xa", enough, GWEI).level is Level.GOOD
    low = judge_gas(use, "0xa", enough - 1, GWEI)
    assert (low.level, low.words) == (Level.WARNING, f"The gas money lasts for about 99 {use.units}.")
    assert judge_gas(use, "0xa", 0, GWEI).level is Level.BAD


def test_the_operator_is_told_where_to_send_its_first_coins() -> None:
    assert judge_gas(OPERATOR_GAS, "0xa", 0, GWEI).next_step == "Run dps gas transfer 0xa 1."
