"""Describes in plain lines what happens to one claim. Each line is told once by each carrier."""

from __future__ import annotations

from collections.abc import Callable

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Settlement
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.ends import is_fault
from deepgrid.lifecycle.minutes import minutes_begun
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.provider.claims.job_card import utc

Tell = Callable[[str], None]

LONG_WAIT_S = 20  # since the claim; a shorter wait in Slurm needs no explanation
MOST_REASONS = 5  # that one carrier tells


class JobStory:
    """The story of one claim, as its carrier sees it. `tell` takes each line."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self._told: set[Phase] = set()
        self._reasons: set[str] = set()
        self.last: Observation | None = None

    def observed(self, seen: Observation) -> None:
        """Describe what this observation shows for the first time."""
        if self.last is None:
            time, customer = utc(seen.key.claimed_at), seen.job.customer
            self.tell(f"claimed at {time} for customer {customer}")
        self.last = seen
        slurm = seen.slurm
        if slurm.phase is Phase.QUEUED and slurm.placed and seen.now - seen.key.claimed_at >= LONG_WAIT_S:
            self._waits(slurm.reason)
        if slurm.started_at is not None and self._is_new(Phase.RUNNING):
            time, nodes = utc(slurm.started_at), slurm.nodes or "unknown nodes"
            self.tell(f"started at {time} on {nodes}")
        if slurm.phase is Phase.ENDED and self._is_new(Phase.ENDED):
            state, how = slurm.state, _how_it_ended(slurm)
            self.tell(f"ended as {state}{how}")

    def settled(self, settlement: Settlement, status: str) -> None:
        """Describe who gets what."""
        minutes, tx = settlement.billed_minutes, settlement.tx_hash
        paid, cut, back = map(format_credits, (settlement.paid_wei, settlement.cut_wei, settlement.refunded_wei))
        self.tell(f"settled as {status}: minutes={minutes} earned={paid} cut={cut} returned={back} transaction={tx}")

    def _waits(self, reason: str) -> None:
        """Give each reason once, because a job may wait for days, and Slurm repeats itself."""
        if reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            self.tell(f"waits in Slurm: {reason}")

    def _is_new(self, phase: Phase) -> bool:
        if phase in self._told:
            return False
        self._told.add(phase)
        return True


def _how_it_ended(slurm: SlurmJob) -> str:
    """Return exit status and run time. A job that the cluster ended has no exit status of its own."""
    code, signal = slurm.exit_status >> 8 & 0xFF, slurm.exit_status & 0x7F
    words = f" with signal {signal}" if signal else f" with exit status {code}"
    if is_fault(slurm.state):
        words = ""
    if slurm.started_at is None or slurm.ended_at is None:
        return f"{words}, never started"
    return f"{words} after {slurm.run_s} s: minutes={minutes_begun(slurm.run_s)}"
