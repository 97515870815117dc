"""The faults that a suite injects, by round.

The faults of a round follow each other while the same jobs are in flight. A round combines only faults that allow the
same outcomes. Otherwise the judge would be less strict than it can be.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.chaos.fault import Allowed, Fault

DEEP = 2000  # injections; there are 125 faults
KILLS, OTHERS, REFUSALS = 1, 2, 1
Round = tuple[int, Sequence[Fault]]  # a seed and its faults


def few(modules: Mapping[str, Iterable[Fault]], seed: int) -> list[Round]:
    """Return a round of kills and faults of other modules, and a short one of faults that refuse jobs."""
    rng = random.Random(f"{seed}")
    usual = {name: [fault for fault in found if not fault.allows - {Allowed.STEP}] for name, found in modules.items()}
    chosen = rng.sample(usual.pop("kills"), KILLS)
    chosen += [rng.choice(found) for found in rng.sample(list(usual.values()), OTHERS)]
    refused = [fault for found in modules.values() for fault in found if fault.allows == {Allowed.REFUSED}]
    return [(seed, rng.sample(chosen, len(chosen))), (seed, rng.sample(refused, REFUSALS))]


def many(faults: Iterable[Fault], seed: int, count: int, at_once: int) -> list[Round]:
    """Return `count` injections: every fault equally often, in an order that differs from turn to turn."""
    chosen, rounds, turn = list(faults), [], 0
    while count > 0:
        order = random.Random(f"{seed + turn}").sample(chosen, min(count, len(chosen)))
        rounds += [(seed + turn, together) for together in _grouped(order, at_once)]
        count -= len(order)
        turn += 1
    return rounds


def _grouped(faults: Iterable[Fault], at_once: int) -> list[Sequence[Fault]]:
    alike: dict[object, list[Fault]] = defaultdict(list)
    for fault in faults:
        alike[fault.allows - {Allowed.STEP}].append(fault)  # the faults of a round allow the same outcomes
    return [group[at : at + at_once] for group in alike.values() for at in range(0, len(group), at_once)]
