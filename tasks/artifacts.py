"""Tables that people read in the Prefect UI, and tags by which they find runs."""

from __future__ import annotations

import logging
import time
from collections import Counter
from functools import partial
from typing import Any

from prefect.artifacts import acreate_table_artifact
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext

from deepgrid.operator.rounds import Decision
from deepgrid.operator.session import OperatorSession
from deepgrid.provider.claims.job_card import JobCard
from orchestration.outages import answer_of, warn

ROWS = 30  # of each kind in the table of a round
ROUNDS = 60  # in the table of the history
HISTORY_S = 60.0
logger = logging.getLogger(__name__)

FIGURES = "Figures of the last rounds, newest first. Times are unix seconds, durations seconds."


async def publish_card(card: JobCard) -> None:
    """Publish a job's card as a table of this run, and add the card's tags to the run.

    An outage of Prefect delays both, as it delays the end of the run. When Prefect refuses them, only they are lost.
    The table has no key, or each job would be an entry of the page with all artifacts.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    run = context.flow_run
    table = [{"what": name, "value": value} for name, value in card.values.items()]
    tags = sorted({*run.tags, *card.tags})
    try:
        await answer_of(partial(acreate_table_artifact, table, description=card.message))
        async with get_client() as client:
            await answer_of(partial(client.update_flow_run, run.id, tags=tags))
    except Exception as error:  # Prefect's client raises many types
        warn(logger, f"{run.name}: its card is not published", error)


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
