"""When each cluster has room for a job, for all clusters at once, while a round fills them.

Each cluster has steps as of `occupancy.free_steps`. They are merged to at most `STEPS`: what becomes free at a
merged step counts from the next one on. So a merged table is later than the exact one, never earlier.

A job that has to wait may reserve its start, one per cluster, as in EASY backfill (Lifka, "The ANL/IBM SP
scheduling system", 1995). Jobs after it use the cluster only if they end before that start, or leave enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepgrid.scheduling.occupancy import Step

STEPS = 32
CPUS, MEM, GPUS = 0, 1, 2

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]
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
        self._steps = [_merged([*own]) for own in steps]
        self.total = [own[-1][1:] for own in steps]  # CPUs, memory, GPUs
        self.soon = np.zeros((3, count))  # free at the horizon
        self.load = np.zeros(count)  # part of the scarcest resource that is taken at the next start
        self.ready = np.zeros(count)  # earliest next start, unix time
        self._at = np.full((count, STEPS), np.inf)
        self._free = np.zeros((3, count, STEPS))
        self._stale = set(range(count))  # clusters whose steps are not in the two arrays
        self._reserved = np.full(count, np.inf)  # start of the job that reserved the cluster
        self._spare = np.full((3, count), np.inf)  # what that job leaves
        for cluster in range(count):
            self._note(cluster)

    def soon_enough(self, needs: Floats, clusters: Indexes | slice) -> Mask:
        """Whether a job could start at these clusters by the horizon."""
        enough = self.soon[CPUS][clusters] >= needs[CPUS]
        enough &= self.soon[MEM][clusters] >= needs[MEM]
        if needs[GPUS]:
            enough &= self.soon[GPUS][clusters] >= needs[GPUS]
        return enough

    def starts(self, needs: Floats, clusters: Indexes) -> Floats:
        """Estimated starts at these clusters, unix time; infinity for never."""
        self._refresh()
        holds = self._free[CPUS, clusters] >= needs[CPUS]
        holds &= self._free[MEM, clusters] >= needs[MEM]
        if needs[GPUS]:
            holds &= self._free[GPUS, clusters] >= needs[GPUS]
        first = holds.argmax(axis=1)
        found: Floats = np.where(holds.any(axis=1), self._at[clusters, first], np.inf)
        return found

    def start(self, needs: Floats, cluster: int) -> float:
        """The estimated start at one cluster, unix time; infinity for never."""
        cpus, mem, gpus = needs.tolist()
        for at, free_cpus, free_mem, free_gpus in self._steps[cluster]:
            if free_cpus >= cpus and free_mem >= mem and free_gpus >= gpus:
                return at
        return float("inf")

    def leaves_reserved(self, needs: Floats, clusters: Indexes, ends: Floats) -> Mask:
        """Whether a job that ends then does not delay the job that reserved the cluster."""
        spare = self._spare[:, clusters]
        enough: Mask = (ends <= self._reserved[clusters]) | (spare >= needs[:, None]).all(axis=0)
        return enough

    def place(self, cluster: int, needs: Floats, start: float, seconds: float) -> None:
        """Count a job that starts at `start`, where `start` put it. The next job of this cluster starts no earlier."""
        cpus, mem, gpus = needs.tolist()
        end = start + seconds
        taken: list[Amounts] = []
        after: list[Amounts] = []
        for step in self._steps[cluster]:
            at, free_cpus, free_mem, free_gpus = step
            if at <= start:
                taken = [(start, free_cpus - cpus, free_mem - mem, free_gpus - gpus)]
            elif at < end:
                taken.append((at, free_cpus - cpus, free_mem - mem, free_gpus - gpus))
            else:
                after.append(step)
        if not after or after[0][0] > end:
            _, free_cpus, free_mem, free_gpus = taken[-1]
            taken.append((end, free_cpus + cpus, free_mem + mem, free_gpus + gpus))
        self._steps[cluster] = _merged(taken + after)
        self._note(cluster)
        if end > self._reserved[cluster]:
            self._spare[:, cluster] -= needs

    def is_reserved(self, cluster: int) -> bool:
        """Whether a job reserved its start at the cluster."""
        return bool(np.isfinite(self._reserved[cluster]))

    def reserve(self, cluster: int, needs: Floats, start: float) -> None:
        """Keep the resources for a job that starts at `start`. A start at infinity keeps nothing."""
        if start == np.inf:
            return
        self.reservations += 1
        self._reserved[cluster] = start
        free = next(step for step in reversed(self._steps[cluster]) if step[0] <= start)
        self._spare[:, cluster] = np.array(free[1:]) - needs

    def _note(self, cluster: int) -> None:
        """Derive what is asked for all clusters from the steps of one."""
        steps = self._steps[cluster]
        self._stale.add(cluster)
        self.ready[cluster] = steps[0][0]
        soon = None
        for step in steps:
            if step[0] > self.horizon:
                break
            soon = step
        self.soon[:, cluster] = soon[1:] if soon else (-np.inf, -np.inf, -np.inf)
        total = self.total[cluster]
        self.load[cluster] = max(
            1.0 - free / all_ if all_ else 0.0 for free, all_ in zip(steps[0][1:], total, strict=True)
        )  # fmt: skip

    def _refresh(self) -> None:
        """Bring the arrays of steps up to date."""
        for cluster in self._stale:
            steps = self._steps[cluster]
            padding: list[Amounts] = [(np.inf, *steps[-1][1:])] * (STEPS - len(steps))
            at, *free = zip(*steps, *padding, strict=True)
            self._at[cluster], self._free[:, cluster] = at, free
        self._stale.clear()


def _merged(steps: list[Amounts]) -> list[Amounts]:
    """At most `STEPS` steps: the first, the last, and every second of the others."""
    while len(steps) > STEPS:
        steps = steps[:1] + steps[1 + len(steps) % 2 :: 2]
    return steps
