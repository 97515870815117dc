"""Has requests examined in processes of their own, and keeps the answers that depend on nothing but their text."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Any

from deepgrid.compat.settings import CompatLimits
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.worker_pool import WorkerPool

MOST_KEPT = 32  # answers, such as the schema for different tools


class Examiner:
    """The one of a service. `pool` is closed with it."""

    def __init__(self, limits: CompatLimits) -> None:
        turns = FairQueue(limits.graphql_slots, limits.graphql_waiting_per_address, limits.check_wait_s)
        self.pool = WorkerPool("deepgrid.compat.graphql.operations", turns, limits.graphql_within_s)
        self._kept: OrderedDict[bytes, dict[str, Any]] = OrderedDict()

    async def examine(self, source: str, body: bytes) -> dict[str, Any]:
        """What `operations.executed` says of a body from this source address. Raises Refusal."""
        key = hashlib.sha256(body).digest()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found: dict[str, Any] = json.loads(await self.pool.ask(source, body))
        if not found["needs"] and "errors" not in found["content"]:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found
