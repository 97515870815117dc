"""A fault: something that breaks while jobs are in flight, and is whole again afterwards.

Each module of `faults` has a list `FAULTS`. `inject(world, rng)` is an asynchronous context manager: entered while
jobs are in flight (more are submitted inside), with everything repaired when it is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from tests.chaos import faults

if TYPE_CHECKING:
    from tests.chaos.world import World


class Allowed(Enum):
    """What may become of jobs besides what their kind says, because of the fault itself; be narrow.

    LOST: PANICKED with a full refund, because Slurm lost the job. REFUSED: given back, and run elsewhere.
    FAULT: FAILED with 0 minutes and a reason, for faults of nodes. ENDED: FAILED, billed for what ran, because the
    cluster itself ended the job. REQUEUED: the same, because the job was queued again after it had started.
    STEP: FAILED, billed for what ran, because srun could not start a step, and said so: it waits for slurmctld for half
    of SlurmctldTimeout only.
    """

    LOST = "lost"
    REFUSED = "refused"
    FAULT = "fault"
    ENDED = "ended"
    REQUEUED = "requeued"
    STEP = "step"


Inject = Callable[["World", random.Random], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Fault:
    """`quick` ones are part of `./run test`. `needs` are kinds of jobs (`kinds.KINDS`) of which some must be in flight.

    `cold_within_s` is how long after the repair all jobs are over, 0 for the usual. A fault that is `awaited` waits
    itself for what it strikes, such as a kill at a point; others strike when jobs have come to a stage that is drawn.
    """

    name: str
    quick: bool
    inject: Inject
    needs: tuple[str, ...] = ()
    allows: frozenset[Allowed] = field(default_factory=frozenset)
    cold_within_s: float = 0.0
    awaited: bool = False


def all_faults() -> dict[str, Fault]:
    """Every fault by name."""
    modules = [import_module(f"{faults.__name__}.{found.name}") for found in iter_modules(faults.__path__)]
    listed = [fault for module in modules for fault in module.FAULTS]
    named = {fault.name: fault for fault in listed}
    assert len(named) == len(listed), "two faults have the same name"
    return named
