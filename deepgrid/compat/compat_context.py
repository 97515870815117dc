"""Settings and limits of the services for existing clients, and the context of their requests."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission import Admission, Rate, ScriptChecks
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.limits import Buckets, Shares
from deepgrid.services.context import Context, app_state

HTTPS_PORT = 443
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?\Z")
FETCHES_WAITING_PER_ADDRESS = 4
NICENESS = 5  # of checks, because signed uploads come first


@dataclass(frozen=True)
class CompatLimits:
    """Limits in addition to the services'. Times are seconds, sizes bytes. An address is a source address."""

    running: int = 256  # requests over HTTP and gRPC. Signed requests are counted separately.
    # definitions without a signature, which have no owner until a job names them
    submissions_per_address: Rate = field(default=Rate(1, 100))
    definitions: int = 10_000
    definitions_per_address: int = 1000
    definition_bytes: int = 256 * 1024 * 1024
    definition_bytes_per_address: int = 32 * 1024 * 1024
    check_slots: int = 1  # checks of scripts at the same time
    checks_waiting_per_address: int = 16
    check_wait_s: float = 45.0  # existing clients never retry, so they wait longer than signed uploads
    module_fetches: int = 2  # jobs whose modules are fetched at the same time
    # GraphQL, whose requests are examined in separate processes
    graphql_slots: int = 2  # processes; one is reserved for small requests
    graphql_waiting_per_address: int = 64  # for `check_wait_s`
    graphql_within_s: float = 10.0  # a process that examines for longer is killed
    # the log service
    stream_s: float = 24 * 3600.0  # maximum length of a stream
    list_every_s: float = 10.0  # pause between two lists of logs in a stream
    job_within_s: float = 30.0  # wait for a job that is read right after its transaction was sent
    jobs_awaited: int = 64  # by all readers together
    jobs_awaited_per_signer: int = 2
    request_within_s: float = 10.0  # to receive a request over gRPC
    answer_within_s: float = 60.0  # to send the next answer to it


@dataclass(frozen=True)
class CompatSettings:
    """Settings of the services for existing clients.

    `module_hosts`: `HOST` or `HOST:PORT` of each git server from which modules are fetched for clients that do not
    sign. `private_module_hosts`: whether these hosts may be at private addresses.
    """

    module_hosts: tuple[str, ...] = ()
    private_module_hosts: bool = False
    limits: CompatLimits = field(default_factory=CompatLimits)

    def __post_init__(self) -> None:
        """Raise ConfigurationError for an entry that is not a host."""
        for entry in self.module_hosts:
            if not _HOST.match(entry):
                raise ConfigurationError(
                    f"{entry[:80]!r} is not a host from which modules can be fetched.",
                    next_step="Give names such as git.example.org or git.example.org:8443.",
                )

    def hosts_and_ports(self) -> frozenset[tuple[str, int]]:
        """Return the listed hosts in lower case, each with its port."""
        parts = (entry.lower().partition(":") for entry in self.module_hosts)
        return frozenset((host, int(port or HTTPS_PORT)) for host, _, port in parts)


class CompatContext:
    """State that requests of existing clients share. Signed requests never wait for it."""

    def __init__(self, services: Context, settings: CompatSettings) -> None:
        self.services, self.settings, self.limits = services, settings, settings.limits
        limits = settings.limits
        self.admission = Admission(replace(services.admission.limits, running=limits.running))
        queue = (limits.check_slots, limits.checks_waiting_per_address, limits.check_wait_s)
        self.checks = ScriptChecks(*queue, niceness=NICENESS, checked=services.metrics.checked)
        services.all_checks.append(self.checks)
        self.fetches = FairQueue(limits.module_fetches, FETCHES_WAITING_PER_ADDRESS, limits.check_wait_s)
        self.fetch_threads = ThreadPoolExecutor(limits.module_fetches, "modules")
        self.awaited_jobs = Shares(limits.jobs_awaited_per_signer, limits.jobs_awaited)
        self.submissions = Buckets(limits.submissions_per_address)


Compat = Annotated[CompatContext, Depends(app_state("compat"))]
