"""What clients that do not sign may store, and the bounds on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from deepgrid.services.admission.checks import ScriptChecks
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.gate import too_many
from deepgrid.services.admission.limits import Buckets, Limits
from deepgrid.services.refusal import Refusal

FETCHES_WAITING_PER_ADDRESS = 4


@dataclass(frozen=True)
class AnonymousSettings:
    """What the services do for clients that do not sign.

    `enabled`: whether definitions without a signature are stored.
    `module_hosts`: `HOST` or `HOST:PORT` of the git servers whose modules are fetched for them.
    `private_module_hosts`: whether these hosts may be at private addresses.
    """

    enabled: bool = True
    module_hosts: tuple[str, ...] = ()
    private_module_hosts: bool = False


class AnonymousAdmission:
    """The counters and queues for definitions without a signature. Signed uploads never wait for them."""

    def __init__(
        self,
        settings: AnonymousSettings = AnonymousSettings(),
        limits: Limits = Limits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.checks = ScriptChecks(limits, anonymous=True)
        self.fetches = FairQueue(limits.module_fetches, FETCHES_WAITING_PER_ADDRESS, limits.check_wait_s)
        self._submissions = Buckets(limits.anonymous_per_address, clock)

    def submit(self, source: str) -> None:
        """Count a submission. Refuses if they are switched off, and above the rate of the source address."""
        if not self.settings.enabled:
            raise Refusal(403, "this grid stores only definitions that their customer signed, as `dps` does")
        if not self._submissions.take(source):
            raise too_many(self._submissions.wait_s(source))
