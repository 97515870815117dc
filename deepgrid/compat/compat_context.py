"""The context of every request of existing clients: the services, and counters and queues apart from theirs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Request

from deepgrid.compat.settings import CompatSettings
from deepgrid.services.admission import Admission, ScriptChecks
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.gate import too_many
from deepgrid.services.admission.limits import Buckets
from deepgrid.services.context import Context

FETCHES_WAITING_PER_ADDRESS = 4
NICENESS = 5  # of checks: those of signed uploads come first


class CompatContext:
    """The parts that requests of existing clients share. Signed requests never wait for them."""

    def __init__(self, services: Context, settings: CompatSettings) -> None:
        self.services, self.settings, self.limits = services, settings, settings.limits
        limits = settings.limits
        self.admission = Admission(replace(services.admission.limits, running=limits.running))
        self.checks = ScriptChecks(
            limits.check_slots, limits.checks_waiting_per_address, limits.check_wait_s, niceness=NICENESS,
            checked=services.metrics.checked,
        )  # fmt: skip
        services.all_checks.append(self.checks)
        self.fetches = FairQueue(limits.module_fetches, FETCHES_WAITING_PER_ADDRESS, limits.check_wait_s)
        self.fetch_threads = ThreadPoolExecutor(limits.module_fetches, "modules")
        self._submissions = Buckets(limits.submissions_per_address)

    def submit(self, source: str) -> None:
        """Count a submission. Refuses above the rate of the source address."""
        if not self._submissions.take(source):
            raise too_many(self._submissions.wait_s(source))


def _context(request: Request) -> CompatContext:
    context = request.app.state.compat
    assert isinstance(context, CompatContext)
    return context


Compat = Annotated[CompatContext, Depends(_context)]
