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


class StartTable:
    """The free resources of each cluster over time.

    Args:
        steps: Per cluster, its steps at the beginning of the round.
        now: Unix time.
        horizon: Jobs that can start by this time (unix time, may be infinite) can be assigned now.
    """

    def __init__(self, steps: Sequence[Sequence[Step]], now: float, horizon: float) -> None:
        count = len(steps)
        self.now, self.horizon = now, horizon
        self._at = np.full((count, STEPS), np.inf)
        self._free = np.zeros((3, count, STEPS))
        self.soon = np.zeros((3, count))  # free at the horizon
        self.load = np.zeros(count)  # part of the scarcest resource that is taken, at the next start
        self.ready = np.zeros(count)  # earliest next start, unix time
        self.total = np.array([[one[-1].cpus, one[-1].mem_mb, one[-1].gpus] for one in steps]).T.reshape(3, count)
        self.reservations = 0
        self._reserved = np.full(count, np.inf)  # start of the job that reserved the cluster
        self._spare = np.full((3, count), np.inf)  # what that job leaves
        for index, own in enumerate(steps):
            at = np.array([step.at for step in own])
            self._write(index, at, np.array([[step.cpus, step.mem_mb, step.gpus] for step in own]).T)

    def soon_enough(self, needs: Floats, clusters: Indexes) -> Mask:
        """Whether a job could start at these clusters by the horizon."""
        enough = self.soon[CPUS][clusters] >= needs[CPUS]
        enough &= self.soon[MEM][clusters] >= needs[MEM]
        if needs[GPUS]:
            enough &= self.soon[GPUS][clusters] >= needs[GPUS]
        return enough

    def starts(self, needs: Floats, clusters: Indexes) -> Floats:
        """Estimated starts at these clusters, unix time; infinity for never."""
        holds = self._free[CPUS, clusters] >= needs[CPUS]
        holds &= self._free[MEM, clusters] >= needs[MEM]
        if needs[GPUS]:
            holds &= self._free[GPUS, clusters] >= needs[GPUS]
        first = holds.argmax(axis=1)
        found: Floats = np.where(holds.any(axis=1), self._at[clusters, first], np.inf)
        return found

    def start(self, needs: Floats, cluster: int) -> float:
        """The estimated start at one cluster, unix time; infinity for never."""
        holds = (self._free[:, cluster] >= needs[:, None]).all(axis=0)
        first = int(holds.argmax())
        return float(self._at[cluster, first]) if holds[first] else float("inf")

    def leaves_reserved(self, needs: Floats, clusters: Indexes, ends: Floats) -> Mask:
        """Whether a job that ends then does not delay the job that reserved the cluster."""
        spare = self._spare[:, clusters]
        enough: Mask = (ends <= self._reserved[clusters]) | (spare >= needs[:, None]).all(axis=0)
        return enough

    def place(self, cluster: int, needs: Floats, start: float, seconds: float) -> None:
        """Count a job that starts at `start`. The next job of this cluster starts then or later."""
        at, free = self._at[cluster], self._free[:, cluster]
        first = max(0, int(at.searchsorted(start, "right")) - 1)
        end = start + seconds
        last = int(at.searchsorted(end, "right"))
        middle = at[first:last].copy()
        middle[0] = max(start, middle[0])
        new_at = np.concatenate((middle, (end,), at[last:]))
        new_free = np.concatenate((free[:, first:last] - needs[:, None], free[:, last - 1 :]), axis=1)
        self._write(cluster, new_at, new_free)
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
        at, free = self._at[cluster], self._free[:, cluster]
        self._reserved[cluster] = start
        self._spare[:, cluster] = free[:, max(0, int(at.searchsorted(start, "right")) - 1)] - needs

    def _write(self, cluster: int, at: Floats, free: Floats) -> None:
        """Store the steps of a cluster, merged, and what follows from them."""
        used = int(at.searchsorted(np.inf))
        if used > STEPS:
            kept = np.linspace(0, used - 1, STEPS).astype(np.intp)
            at, free, used = at[kept], free[:, kept], STEPS
        self._at[cluster, :used], self._at[cluster, used:] = at[:used], np.inf
        self._free[:, cluster, :used], self._free[:, cluster, used:] = free[:, :used], free[:, used - 1 : used]
        self.ready[cluster] = at[0]
        soon = int(at[:used].searchsorted(self.horizon, "right")) - 1
        self.soon[:, cluster] = free[:, soon] if soon >= 0 else -np.inf
        total = self.total[:, cluster]
        self.load[cluster] = (1 - free[:, 0] / np.maximum(total, 1)).max(where=total > 0, initial=0.0)
