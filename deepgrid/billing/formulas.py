"""The formulas of the bill, the same as the contract's (docs/explanation/contracts.md). All money in wei."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.lifecycle.job import Asked, Prices

MAX_LIMIT_MINUTES = 525_600
"""The longest time limit that a job can buy: 365 days. A job without a price gets it too."""


def rate_wei_per_minute(definition: Asked, prices: Prices) -> int:
    """Return price of one minute of a job: GPUs, and per task its CPUs and their memory (MB)."""
    cpus = definition.ntasks * definition.cpus_per_task
    return (
        definition.gpus * prices.gpu_wei_per_minute
        + cpus * prices.cpu_wei_per_minute
        + cpus * definition.mem_per_cpu_mb * prices.mem_wei_per_mb_minute
    )


def affordable_minutes(locked_wei: int, rate_wei: int) -> int:
    """Whole minutes that the locked credits buy, at most MAX_LIMIT_MINUTES."""
    return MAX_LIMIT_MINUTES if rate_wei == 0 else min(locked_wei // rate_wei, MAX_LIMIT_MINUTES)


@dataclass(frozen=True, slots=True)
class Bill:
    """The division of locked credits: `paid` to the provider, `cut` to the platform, the rest to the customer."""

    cost: int
    paid: int
    cut: int
    refunded: int


def bill(minutes: int, rate_wei: int, locked_wei: int, cut_percent: int) -> Bill:
    """Divide `locked_wei` for `minutes` at `rate_wei`; the parts add up to the wei.

    The cost is never more than `locked_wei`: one minute more than the credits buy costs all of them. The platform
    gets floor(cost * cut / 100), the provider gets the rest of the cost.
    """
    charged = min(minutes, affordable_minutes(locked_wei, rate_wei) + 1)
    cost = min(charged * rate_wei, locked_wei)
    cut = cost * cut_percent // 100
    return Bill(cost=cost, paid=cost - cut, cut=cut, refunded=locked_wei - cost)
