"""One table says who carries a claim: the step for each combination of claim, flow run and process. Pure.

The chain says whether the claim is open, and Prefect in which state its run is. A run in any state may be scheduled
again: it continues from what the chain and Slurm say. A test compares this with docs/explanation/architecture.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from prefect.client.schemas.objects import FlowRun


class Claim(StrEnum):
    """The claim that a run carries, as the chain has it."""

    NONE = "no claim"  # the run of another flow
    UNREAD = "unread"  # the chain was not asked: the run itself finds out
    OPEN = "open"
    OVER = "over"


class Run(StrEnum):
    """The state of the run in Prefect."""

    MISSING = "missing"
    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CRASHED = "crashed"
    ENDED = "failed or cancelled"
    COMPLETED = "completed"


class Carrier(StrEnum):
    """The carrier of the claim in the process that serves the pool."""

    RUN = "its run"
    FALLBACK = "a fallback"  # carries the claim without a run
    NONE = "none"
    FORMER = "a former process"  # which is gone; or this one before an outage of Prefect


class Step(StrEnum):
    """The step that is taken with the run."""

    LEAVE = "leave"
    CREATE = "create"
    SCHEDULE = "schedule again"
    CARRY = "carry without it"  # by a fallback
    CONTINUE = "continue"  # here, in its state, without a request
    CANCEL = "cancelled"
    CRASH = "crashed"


class Wait(StrEnum):
    """For how long the claim must lack a carrier before that."""

    NOT = "at once"
    START = "time to start"  # a new run is being created or started
    RETRY = "time to retry"  # a person or an error ended the run
    TURN = "time for its turn"  # the run is due, but its pool is paused or has reached its limit


class Decision(NamedTuple):
    """The step, and when."""

    step: Step
    wait: Wait = Wait.NOT


LEAVE = Decision(Step.LEAVE)
_FORMER = {Run.PENDING: Step.SCHEDULE, Run.RUNNING: Step.CONTINUE, Run.CANCELLING: Step.CANCEL}
_OTHER_NAMES = {"FAILED": Run.ENDED, "CANCELLED": Run.ENDED, "PAUSED": Run.RUNNING}  # in Prefect
_BY_ITSELF = {Run.MISSING, Run.PENDING, Run.RUNNING, Run.CRASHED}  # no person and no error of a step ended the run


def decide(claim: Claim, run: Run, carrier: Carrier) -> Decision:
    """Return what happens to the run of a claim."""
    if carrier is Carrier.RUN:
        return LEAVE
    if run is Run.SCHEDULED:
        return Decision(Step.CARRY, Wait.TURN) if claim is Claim.OPEN and carrier is Carrier.NONE else LEAVE
    if carrier is Carrier.FORMER:
        step = _FORMER.get(run, Step.LEAVE)
        ends = claim is Claim.NONE and step in (Step.SCHEDULE, Step.CONTINUE)
        return Decision(Step.CRASH if ends else step)
    if claim is Claim.OVER and run is Run.COMPLETED:
        return LEAVE
    step = Step.CREATE if run is Run.MISSING else Step.SCHEDULE
    if claim is Claim.OVER or carrier is Carrier.FALLBACK:
        return Decision(step)
    return Decision(step, Wait.START if run in _BY_ITSELF else Wait.RETRY)


def state_of(run: FlowRun | None) -> Run:
    """Return the run's state, as the table has it."""
    if run is None:
        return Run.MISSING
    kind = run.state.type.name if run.state is not None else "CRASHED"
    return _OTHER_NAMES.get(kind) or Run[kind]
