"""Finds the clusters that have the nodes for a job, and what the others lack, by the rules of `fit.misfit`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Hardware, JobDefinition
from deepgrid.scheduling.fit import Lack, lack
from deepgrid.scheduling.tables.rows import RecentRows

LARGEST = 2**31
"""Figures from here on are compared by `fit.lack` with Python's ints, so that no product overflows 64 bits."""


class Shape(NamedTuple):
    """The resources that a job requests of nodes. Jobs with the same shape fit the same clusters.

    `gpus` is for the whole job.
    """

    ntasks: int
    cpus_per_task: int
    mem_per_cpu_mb: int
    gpus: int

    @staticmethod
    def of(definition: JobDefinition) -> Shape:
        """Return the shape of a job."""
        return Shape(definition.ntasks, definition.cpus_per_task, definition.mem_per_cpu_mb, definition.gpus)

    @property
    def cpus(self) -> int:
        return self.ntasks * self.cpus_per_task

    @property
    def task_mem_mb(self) -> int:
        return self.cpus_per_task * self.mem_per_cpu_mb


Lacks = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


class FitTable:
    """The things that each cluster lacks for a shape.

    The nodes of a cluster are compressed into types with a count, those with the most GPUs first.
    """

    def __init__(self, hardware: Sequence[Hardware]) -> None:
        self.hardware = tuple(hardware)
        self.rows: RecentRows[Shape, Lacks] = RecentRows()
        self._large = [index for index, one in enumerate(hardware) if _is_large(one)]
        types = [[] if _is_large(one) else _types(one) for one in hardware]
        flat = np.array([(*one, n) for kinds in types for one, n in kinds or [((0, 0, 0), 0)]], np.int64).reshape(-1, 4)
        self._gpus, self._cpus, self._mem, self._count = np.ascontiguousarray(flat.T)
        self._last = np.cumsum([max(1, len(kinds)) for kinds in types], dtype=np.intp) - 1
        self._of = np.repeat(np.arange(len(types)), [max(1, len(kinds)) for kinds in types])
        self._all_cpus = self._sum(self._cpus * self._count)
        self._all_mem = self._sum(self._mem * self._count)
        self._all_gpus = self._sum(self._gpus * self._count)

    def lacks(self, shape: Shape) -> Lacks:
        """For each cluster a `Lack`."""
        return self.rows.get(shape, self._row)

    def _row(self, shape: Shape) -> Lacks:
        if not _is_plain(shape):
            return np.array([lack(shape, one)[0] for one in self.hardware], np.uint8)
        slots = self._cpus // shape.cpus_per_task
        if shape.task_mem_mb:
            slots = np.minimum(slots, self._mem // shape.task_mem_mb)
        row = np.zeros(len(self.hardware), np.uint8)
        if shape.gpus:
            np.putmask(row, self._reachable(slots, shape.ntasks) < shape.gpus, Lack.REACH)
        np.putmask(row, self._sum(slots * self._count) < shape.ntasks, Lack.TASKS)
        np.putmask(row, self._all_mem < shape.ntasks * shape.task_mem_mb, Lack.MEMORY)
        if shape.gpus:
            np.putmask(row, self._all_gpus < shape.gpus, Lack.GPUS)
        np.putmask(row, self._all_cpus < shape.cpus, Lack.CPUS)
        for index in self._large:
            row[index] = lack(shape, self.hardware[index])[0]
        return row

    def _reachable(self, slots: Ints, ntasks: int) -> Ints:
        """Return GPUs of the at most `ntasks` nodes that host tasks and have the most GPUs."""
        hosting = np.where(slots > 0, self._count, 0)
        upto = np.cumsum(hosting)
        before_cluster = np.concatenate(((0,), upto[self._last[:-1]]))
        used = np.clip(ntasks - (upto - hosting - before_cluster[self._of]), 0, hosting)
        return self._sum(used * self._gpus)

    def _sum(self, figures: Ints) -> Ints:
        """Return sums per cluster: differences of running sums, which are right even if these overflow."""
        upto = np.cumsum(figures)[self._last]
        upto[1:] -= upto[:-1].copy()
        return upto


def _types(hardware: Hardware) -> list[tuple[tuple[int, int, int], int]]:
    """Return the distinct (GPUs, CPUs, memory) of the nodes with their counts, most GPUs first."""
    nodes = zip(hardware.gpus_per_node, hardware.cpus_per_node, hardware.mem_per_node_mb, strict=True)
    return sorted(Counter(nodes).items(), reverse=True)


def _is_large(hardware: Hardware) -> bool:
    figures = (*hardware.gpus_per_node, *hardware.cpus_per_node, *hardware.mem_per_node_mb)
    return max(figures, default=0) >= LARGEST


def _is_plain(shape: Shape) -> bool:
    """Return whether a shape asks for something, and all sums over its tasks fit into 64 bits."""
    positive = shape.ntasks > 0 and shape.cpus_per_task > 0
    return positive and max(shape.cpus, shape.gpus, shape.ntasks * shape.task_mem_mb) < 2**61
