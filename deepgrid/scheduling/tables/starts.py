"""Estimates when each cluster has room for a job, for all clusters at once, while a round fills them.

Each cluster has steps as of `occupancy.free_steps`. They are merged to at most `STEPS`: what becomes free at a
merged step counts from the next one on. So a merged table is later than the exact one, never earlier.

A job that has to wait may reserve its start, one per cluster, as in EASY backfill (Lifka, "The ANL/IBM SP
scheduling system", 1995). Jobs after it use the cluster only if they end before that start, or leave enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepgrid.scheduling.occupancy import Step

STEPS = 32
CPUS, MEM, GPUS = 0, 1, 2

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Amounts = tuple[float, float, float, float]
"""A `Step` without names, which is made faster."""


class StartTable:
    """The free resources of each cluster over time.

    Args:
        steps: Per cluster, its steps at the beginning of the round.
        now: Unix time.
        horizon: Jobs that can start by this time (unix time, may be infinite) can be assigned now.
    """

    def __init__(self, steps: Sequence[Sequence[Step]], now: float, horizon: float) -> None:
        count = len(steps)
        self.now, self.horizon, self.reservations = now, horizon, 0
        self._steps = [_merge_steps([*own]) for own in steps]
        self.total = [own[-1][1:] for own in steps]  # CPUs, memory, GPUs
        self._parts = [tuple(1.0 / all_ if all_ else 0.0 for all_ in own) for own in self.total]
        self.soon = np.zeros((3, count))  # free at the horizon
        self.load = np.zeros(count)  # part of the scarcest resource that is taken at the next start
        self.ready = np.zeros(count)  # earliest next start, unix time
        self._at = np.full((count, STEPS), np.inf)
        self._free = np.zeros((3, count, STEPS))
        self._stale = set(range(count))  # clusters whose steps are not in the two arrays
        self._reserved = np.full(count, np.inf)  # start of the job that reserved the cluster
        self._spare = np.full((3, count), np.inf)  # resources that this job leaves
        for cluster in range(count):
            self._note(cluster)

    def soon_enough(self, needs: Floats) -> Mask:
        """Per cluster, whether a job could start there by the horizon."""
        enough: Mask = self.soon[CPUS] >= needs[CPUS]
        enough &= self.soon[MEM] >= needs[MEM]
        if needs[GPUS]:
            enough &= self.soon[GPUS] >= needs[GPUS]
        return enough

    def starts(self, needs: Floats, suits: Mask) -> Floats:
        """Per cluster, the estimated start, unix time; infinity for never, and where the cluster does not suit."""
        self._refresh()
        holds = self._free[CPUS] >= needs[CPUS]
        holds &= self._free[MEM] >= needs[MEM]
        if needs[GPUS]:
            holds &= self._free[GPUS] >= needs[GPUS]
        first = holds.argmax(axis=1)
        found: Floats = np.where(suits & holds[:, -1], self._at[np.arange(len(suits)), first], np.inf)
        return found

    def start(self, needs: Floats, cluster: int) -> float:
        """Return the estimated start at one cluster, unix time; infinity for never."""
        cpus, mem, gpus = needs.tolist()
        for at, free_cpus, free_mem, free_gpus in self._steps[cluster]:
            if free_cpus >= cpus and free_mem >= mem and free_gpus >= gpus:
                return at
        return float("inf")

    def leaves_reserved(self, needs: Floats, ends: Floats) -> Mask:
        """Per cluster, whether a job that ends then does not delay the job that reserved the cluster."""
        enough: Mask = self._spare[CPUS] >= needs[CPUS]
        enough &= self._spare[MEM] >= needs[MEM]
        enough &= self._spare[GPUS] >= needs[GPUS]
        enough |= ends <= self._reserved
        return enough

    def place(self, cluster: int, needs: Floats, start: float, seconds: float) -> None:
        """Count a job that starts at `start`, where `start` put it. The next job of this cluster starts no earlier."""
        cpus, mem, gpus = needs.tolist()
        end, steps = start + seconds, self._steps[cluster]
        first, after = _last_until(start, steps), bisect_left(steps, (end,))
        changed = [
            (at, free_cpus - cpus, free_mem - mem, free_gpus - gpus)
            for at, free_cpus, free_mem, free_gpus in steps[first:after]
        ]
        changed[0] = (start, *changed[0][1:])
        if after == len(steps) or steps[after][0] > end:
            changed.append((end, *steps[after - 1][1:]))
        self._steps[cluster] = _merge_steps(changed + steps[after:])
        self._note(cluster)
        if end > self._reserved[cluster]:
            self._spare[:, cluster] -= needs

    def is_reserved(self, cluster: int) -> bool:
        """Return whether a job reserved its start at the cluster."""
        return bool(np.isfinite(self._reserved[cluster]))

    def reserve(self, cluster: int, needs: Floats, start: float) -> None:
        """Keep the resources for a job that starts at `start`. A start at infinity keeps nothing."""
        if start == np.inf:
            return
        self.reservations += 1
        self._reserved[cluster] = start
        steps = self._steps[cluster]
        self._spare[:, cluster] = np.array(steps[_last_until(start, steps)][1:]) - needs

    def _note(self, cluster: int) -> None:
        """Derive what is asked for all clusters from the steps of one."""
        steps = self._steps[cluster]
        self._stale.add(cluster)
        self.ready[cluster] = steps[0][0]
        last = _last_until(self.horizon, steps)
        self.soon[:, cluster] = steps[last][1:] if last >= 0 else -np.inf
        (_, cpus, mem, gpus), (all_cpus, all_mem, all_gpus) = steps[0], self.total[cluster]
        per_cpu, per_mb, per_gpu = self._parts[cluster]
        self.load[cluster] = max((all_cpus - cpus) * per_cpu, (all_mem - mem) * per_mb, (all_gpus - gpus) * per_gpu)

    def _refresh(self) -> None:
        for cluster in self._stale:
            steps = self._steps[cluster]
            padding: list[Amounts] = [(np.inf, *steps[-1][1:])] * (STEPS - len(steps))
            at, *free = zip(*steps, *padding, strict=True)
            self._at[cluster], self._free[:, cluster] = at, free
        self._stale.clear()


def _last_until(time: float, steps: list[Amounts]) -> int:
    """Return the index of the last step at this time or before; -1 without one."""
    return bisect_right(steps, (time, math.inf)) - 1


def _merge_steps(steps: list[Amounts]) -> list[Amounts]:
    """At most `STEPS` steps: the first, the last, and every second of the others."""
    while len(steps) > STEPS:
        steps = steps[:1] + steps[1 + len(steps) % 2 :: 2]
    return steps
