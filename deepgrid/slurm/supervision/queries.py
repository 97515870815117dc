"""Asks the cluster where claims stand: no more than it takes, and concluded in `sightings.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.observe.snapshot import Snapshot


async def conclude(cluster: Cluster, keys: Sequence[JobKey]) -> tuple[Snapshot, dict[JobKey, SlurmJob]]:
    """One look at the cluster and where each claim stands by it; more is asked for the missing only.

    Raises SlurmUnreachable when the cluster, or its accounting, does not answer.
    """
    look = await cluster.look(keys)
    states = cluster.sightings.by_look(look, keys, time.monotonic())
    missing = [key for key in keys if key not in states]
    found, silence = await conclude_missing(cluster, look, missing)
    if silence is not None:
        raise silence
    return look, states | found


async def conclude_missing(
    cluster: Cluster, look: Snapshot, missing: Sequence[JobKey]
) -> tuple[dict[JobKey, SlurmJob], SlurmError | None]:
    """Where claims stand that the look missed, by the controller's memory and, for what has no end there, accounting.

    Neither is asked for claims that were never handed to Slurm. When one does not answer, its error is returned, and
    the claims that it could have told of are left out.
    """
    remembered: list[Row] = []
    accounted: list[Row] = []
    silence = None
    asked = [key for key in missing if look.was_tried(key)]
    try:
        remembered = await cluster.remembered() if asked else []
        asked = [key for key in asked if _leaves_open(look, key, remembered)]
        accounted = await cluster.accounting_of({key: look.ids.get(key.comment) for key in asked})
    except SlurmError as error:
        silence, missing = error, [key for key in missing if key not in asked]
    return cluster.sightings.by_records(look, missing, remembered, accounted, time.monotonic()), silence


def _leaves_open(look: Snapshot, key: JobKey, remembered: Sequence[Row]) -> bool:
    """Whether accounting may know more: no end is known, or only that of the last of several runs."""
    end = look.records_of(key, remembered).end
    return end is None or end.requeued or look.is_unclear(key, end)
