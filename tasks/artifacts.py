"""Tables that people read in the Prefect UI."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prefect.artifacts import acreate_table_artifact

from deepgrid.benchmark.outcome import Comparison
from deepgrid.operator.rounds import Decision
from deepgrid.operator.session import OperatorSession

ROWS = 30  # of each kind in the table of a round
ROUNDS = 60  # in the table of the history
HISTORY_S = 60.0
FIGURES = "Figures of the last rounds, newest first. Times are unix seconds, durations seconds."


async def publish_labels(cluster: str, rows: Sequence[Comparison], words: str) -> None:
    """Publish a cluster's old and new labels as a table."""
    table = [{"label": row.key, "was": row.old, "is": row.new, "moved": "yes" if row.moved else ""} for row in rows]
    await acreate_table_artifact(table=table, key=f"benchmark-{cluster}", description=words)


async def publish_round(session: OperatorSession, decision: Decision) -> None:
    """Publish the round as a table, and at most once per HISTORY_S the figures of the last rounds as another one."""
    await acreate_table_artifact(_rows_of(decision), "meta-schedule-round", "The last round of the meta-scheduler.")
    if (now := time.monotonic()) < session.history_due_at:
        return
    session.history_due_at = now + HISTORY_S
    await acreate_table_artifact(session.store.rounds(ROUNDS), "meta-schedule-history", FIGURES)


def _rows_of(decision: Decision) -> list[dict[str, Any]]:
    """Assigned jobs by cluster, waiting jobs by reason, and the customers' shares; the largest of each."""
    names = {one.address: one.name for one, _ in decision.snapshot.providers}
    assigned = Counter(names.get(one.provider, one.provider) for one in decision.found.assignments)
    waiting = Counter(one.reason for one in decision.found.waiting)
    shares = sorted(decision.found.shares.items(), key=lambda item: -item[1])[:ROWS]
    return [
        *({"what": "assigned", "of": name, "jobs": count, "share": ""} for name, count in assigned.most_common(ROWS)),
        *({"what": "waiting", "of": why, "jobs": count, "share": ""} for why, count in waiting.most_common(ROWS)),
        *({"what": "share", "of": who, "jobs": "", "share": f"{share:.1%}"} for who, share in shares),
    ]
