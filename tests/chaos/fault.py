"""A fault: something breaks while jobs are in flight, and is repaired afterwards.

Each module of `faults` has a list `FAULTS`. `inject(world, rng)` is an asynchronous context manager. It is entered
while jobs are in flight, and more jobs are submitted inside. When it is left, everything is repaired.
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
    """The outcomes that a fault allows in addition to the normal outcome of a kind of job. Allow as little as possible.

    LOST: PANICKED with a full refund, because Slurm lost the job. REFUSED: given back, and run on another cluster.
    FAULT: FAILED with 0 minutes and a reason, because of a node. ENDED: FAILED, billed for the run time, because the
    cluster itself ended the job. REQUEUED: the same, because the job was queued again after it had started.
    STEP: FAILED, billed for the run time, because srun could not start a step and printed that. It waits for slurmctld
    only for half of SlurmctldTimeout.
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
    """`needs` are kinds of jobs (`kinds.KINDS`) that must be in flight.

    All jobs are over `cold_within_s` after the repair; 0 stands for the default. An `awaited` fault waits for its own
    event, such as the arrival at a kill point. The others begin when jobs reach a stage that is drawn at random.
    """

    name: str
    inject: Inject
    needs: tuple[str, ...] = ()
    allows: frozenset[Allowed] = field(default_factory=frozenset)
    cold_within_s: float = 0.0
    awaited: bool = False


def faults_by_module() -> dict[str, list[Fault]]:
    """Return the faults of each module of `faults`."""
    names = [found.name for found in iter_modules(faults.__path__)]
    return {name: import_module(f"{faults.__name__}.{name}").FAULTS for name in names}


def all_faults() -> dict[str, Fault]:
    """Return every fault by name."""
    listed = [fault for found in faults_by_module().values() for fault in found]
    named = {fault.name: fault for fault in listed}
    assert len(named) == len(listed), "two faults have the same name"
    return named
