"""Slurm's words for the state of a job, and the phase that each means."""

from __future__ import annotations

from deepgrid.lifecycle.slurm_state import Phase

_QUEUED = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
# `TimeUsed` grows while the job runs, and stops while it is suspended. In COMPLETING the job is over.
TIMED = frozenset({"RUNNING", "SUSPENDED"})
# In the order of Slurm's state numbers, which completion records contain.
_BY_NUMBER = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
FINAL = frozenset({*_BY_NUMBER[3:], "REVOKED"})
# A run that ended because its owner or an administrator requeued the job. Such a record has an end.
REQUEUED = "REQUEUED"
_REQUEUE_FLAG = 0x400


def phase_of(state: str) -> Phase:
    """Return the phase of a job in Slurm's `state`; UNKNOWN for a state that this code does not know."""
    if state in _QUEUED:
        return Phase.QUEUED
    if state in _RUNNING:
        return Phase.RUNNING
    return Phase.ENDED if state in FINAL else Phase.UNKNOWN


def state_of(number: int) -> str:
    """Slurm's name for the state number in a completion record. The upper bits are flags: completing, resizing, ..."""
    base = number & 0xFF
    if base == 0 and number & _REQUEUE_FLAG:
        return REQUEUED
    return _BY_NUMBER[base] if base < len(_BY_NUMBER) else f"STATE_{base}"
