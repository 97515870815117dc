"""Queries the cluster for the state of claims, with as few queries as possible. `verdict.py` draws the conclusions."""

from __future__ import annotations

import time
from collections.abc import Sequence

from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.observe.snapshot import Snapshot


async def query_verdicts(cluster: Cluster, keys: Sequence[JobKey]) -> tuple[Snapshot, dict[JobKey, SlurmJob]]:
    """Take a snapshot of the cluster and return it with the state of each claim.

    Further queries are made only for claims that the snapshot does not show. Raises SlurmUnreachable when the cluster
    or its accounting does not answer.
    """
    snapshot = await cluster.snapshot(keys)
    states = cluster.verdicts.from_snapshot(snapshot, keys, time.monotonic())
    missing = [key for key in keys if key not in states]
    found, error = await query_missing(cluster, snapshot, missing)
    if error is not None:
        raise error
    return snapshot, states | found


async def query_missing(
    cluster: Cluster, snapshot: Snapshot, missing: Sequence[JobKey]
) -> tuple[dict[JobKey, SlurmJob], SlurmError | None]:
    """The states of claims that the snapshot does not show, by the controller's memory and then by accounting.

    Accounting is queried only for claims whose end the controller does not know. Neither is queried for claims that
    were never handed to Slurm. When a source does not answer, its error is returned, and the claims that it could have
    known are omitted.
    """
    remembered: list[Row] = []
    accounted: list[Row] = []
    failure = None
    asked = [key for key in missing if snapshot.was_tried(key)]
    try:
        remembered = await cluster.remembered() if asked else []
        asked = [key for key in asked if _needs_accounting(snapshot, key, remembered)]
        accounted = await cluster.accounting_of({key: snapshot.ids.get(key.comment) for key in asked})
    except SlurmError as error:
        failure, missing = error, [key for key in missing if key not in asked]
    return cluster.verdicts.from_records(snapshot, missing, remembered, accounted, time.monotonic()), failure


def _needs_accounting(snapshot: Snapshot, key: JobKey, remembered: Sequence[Row]) -> bool:
    """Whether accounting may know more: no end is known, or only the end of the last of several runs."""
    end = snapshot.records_of(key, remembered).end
    return end is None or end.requeued or snapshot.is_unclear(key, end)
