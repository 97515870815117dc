"""Sums over jobs of a period. Money is an exact int of wei."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.billing.usage.capacity import NOTHING, Capacity


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over jobs: those that were settled, their minutes and money, the capacity used, and the one offered."""

    jobs: int = 0
    billed_minutes: int = 0
    paid_wei: int = 0
    cut_wei: int = 0
    refunded_wei: int = 0
    used_s: Capacity = NOTHING
    offered_s: Capacity = NOTHING

    @property
    def cost_wei(self) -> int:
        """The wei that customers paid: to the provider, and the platform's cut."""
        return self.paid_wei + self.cut_wei

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            jobs=self.jobs + other.jobs,
            billed_minutes=self.billed_minutes + other.billed_minutes,
            paid_wei=self.paid_wei + other.paid_wei,
            cut_wei=self.cut_wei + other.cut_wei,
            refunded_wei=self.refunded_wei + other.refunded_wei,
            used_s=self.used_s + other.used_s,
            offered_s=self.offered_s + other.offered_s,
        )
