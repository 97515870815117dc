"""What clients that do not sign may store, and the bounds on it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission.checks import ScriptChecks
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.gate import too_many
from deepgrid.services.admission.limits import Buckets, Limits
from deepgrid.services.refusal import Refusal

FETCHES_WAITING_PER_ADDRESS = 4
HTTPS_PORT = 443
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")


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

    def __post_init__(self) -> None:
        """Raise ConfigurationError for an entry that is no host."""
        for entry in self.module_hosts:
            if not _HOST.match(entry):
                raise ConfigurationError(
                    f"{entry[:80]!r} is not a host from which modules can be fetched.",
                    next_step="Give names such as git.example.org or git.example.org:8443.",
                )

    def hosts_and_ports(self) -> frozenset[tuple[str, int]]:
        """The listed hosts in lower case, each with its port."""
        parts = (entry.lower().partition(":") for entry in self.module_hosts)
        return frozenset((host, int(port or HTTPS_PORT)) for host, _, port in parts)


class AnonymousAdmission:
    """The counters and queues for definitions without a signature. Signed uploads never wait for them."""

    def __init__(
        self,
        settings: AnonymousSettings,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        checked: Callable[[float], None] | None = None,
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.checks = ScriptChecks(limits, anonymous=True, checked=checked)
        self.fetches = FairQueue(limits.module_fetches, FETCHES_WAITING_PER_ADDRESS, limits.anonymous_check_wait_s)
        self.fetch_threads = ThreadPoolExecutor(limits.module_fetches, "modules")
        self._submissions = Buckets(limits.anonymous_per_address, clock)

    def submit(self, source: str) -> None:
        """Count a submission. Refuses if they are switched off, and above the rate of the source address."""
        if not self.settings.enabled:
            raise Refusal(403, "this grid stores only definitions that their customer signed, as `dps` does")
        if not self._submissions.take(source):
            raise too_many(self._submissions.wait_s(source))
