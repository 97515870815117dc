"""A real server on a free port, with a fake chain that the test controls."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
from eth_account import Account
from eth_account.signers.local import LocalAccount

from deepgrid.chain.node.values import Constants
from deepgrid.compat.compat_context import CompatContext, CompatSettings
from deepgrid.compat.existing_clients import serving_existing_clients
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import checks
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.client import ServicesClient
from deepgrid.services.context import Context
from deepgrid.services.edge.listeners import address_of, open_listeners
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.script_check import lint_script
from deepgrid.services.serve import listening
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.signing.session_keys import Rights
from deepgrid.services.signing.signers import SessionKey, Signer
from deepgrid.workflow import Definition, Step, StepRun, parse
from deepgrid.workflow.models import ContainerRun
from tests.services.edge_support import running_edge, short_folder

DOMAIN = Domain(31337, "0x5FbDB2315678afecb367f032d93F642f64180aa3")
PATH = "/v1/jobs/1/log?offset=0"
Headers = dict[str, str]
# Tables that steps of the schema added, for tests that go back to an earlier database.
LATER_TABLES = (
    "grid_restored", "grid_kept_job", "grid_receipt", "grid_bundle", "grid_bundle_use", "grid_bundle_link",
    "grid_subscription", "grid_delivery", "grid_output_use", "grid_job_use", "grid_of_jobs",
)  # fmt: skip
SECRET = "correct horse battery"  # the registry's password of `a_secret_job`
NAMES = ("customer", "rival", "provider", "other_provider", "operator")
ACCOUNTS: dict[str, LocalAccount] = {name: Account.from_key(bytes([n + 1]) * 32) for n, name in enumerate(NAMES)}


@dataclass
class MemoryChain:
    """A chain whose jobs, roles and balances a test sets; `down` makes it silent."""

    jobs_by_id: dict[int, ChainJob] = field(default_factory=dict)
    roles: set[tuple[str, str]] = field(default_factory=set)
    balances: dict[str, int] = field(default_factory=dict)
    minimum_wei: int = 10**18
    calls: int = 0
    down: bool = False

    def _up(self) -> None:
        self.calls += 1
        if self.down:
            raise ChainError("The node does not answer.")

    async def job(self, job_id: int) -> ChainJob:
        return (await self.jobs([job_id]))[0]

    async def jobs(self, job_ids: Sequence[int]) -> list[ChainJob]:
        self._up()
        try:
            return [self.jobs_by_id[job_id] for job_id in job_ids]
        except KeyError:
            raise NotFound("There is no such job.") from None

    async def job_count(self) -> int:
        self._up()
        return max(self.jobs_by_id, default=0)

    async def jobs_by_customer(self, customer: str, first: int = 0) -> list[int]:
        self._up()
        return [job_id for job_id, job in sorted(self.jobs_by_id.items()) if job.customer == customer][first:]

    async def has_jobs(self, customer: str) -> bool:
        self._up()
        return any(job.customer == customer for job in self.jobs_by_id.values())

    async def claimed_jobs(self, provider: str) -> list[int]:
        self._up()
        return [job_id for job_id, job in self.jobs_by_id.items() if job.provider == provider and job.status.hot]

    async def has_role(self, role: str, address: str) -> bool:
        self._up()
        return (role, address) in self.roles

    async def constants(self) -> Constants:
        self._up()
        return Constants(self.minimum_wei, 20, 10, 1, 30, 15)

    async def balance(self, address: str) -> int:
        self._up()
        return self.balances.get(address, 0)

    def put(
        self, job_id: int, definition_hash: str, status: JobStatus = JobStatus.SCHEDULED, **changes: object
    ) -> ChainJob:
        """Put a job of `customer` at `provider` that names this definition."""
        figures = JobDefinition(gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash=definition_hash)
        job = ChainJob(
            id=job_id, status=status, customer=ACCOUNTS["customer"].address, provider=ACCOUNTS["provider"].address,
            definition=figures, name="test", locked_wei=10**18, final_cost_wei=0, submitted_at=1, assigned_at=2,
            claimed_at=3, started_at=0, ended_at=0, cancel_requested_at=0, has_cancel_request=False,
            rate_wei_per_minute=1, cut_percent=5, granted_minutes=60, last_refuser=None, delegate_spending=False,
            last_error="", exit_status=0,
        )  # fmt: skip
        self.jobs_by_id[job_id] = replace(job, **changes)  # type: ignore[arg-type]
        return self.jobs_by_id[job_id]


class Clock:
    """The service's clock: real time plus an offset. Once it is stopped, only the offset moves it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        return (time.time() if self._stopped_at is None else self._stopped_at) + self.ahead_s

    def stop(self) -> None:
        self._stopped_at = time.time()


@dataclass
class Grid:
    """One running service, its chain, and a client for each account."""

    url: str
    chain: MemoryChain
    clock: Clock
    settings: ServicesSettings
    context: Context
    clients: dict[str, ServicesClient]
    compat: CompatContext
    grpc: str | None = None
    authority: Path | None = None

    def __getattr__(self, name: str) -> ServicesClient:
        return self.clients[name]


Start = Callable[..., Awaitable[Grid]]
lint_once = cache(lint_script)  # services of one test process run shellcheck once for each part of a script


@asynccontextmanager
async def starting(folder: Path) -> AsyncIterator[Start]:
    """Start services with their files in `folder`. All end with the context. `database_url` is the store, SQLite if not
    given. With `edge`, clients reach the services through nginx with these limits, with `tls` over TLS. Existing
    clients are served, too.
    """
    async with AsyncExitStack() as stack:
        if checks.lint_script is lint_script:  # the test has not replaced it
            stack.enter_context(mock.patch.object(checks, "lint_script", lint_once))

        async def start_one(
            chain: MemoryChain | None = None, database_url: str | None = None, edge: EdgeLimits | None = None,
            tls: bool = False, behind: tuple[str, ...] = (), compat: CompatSettings | None = None,
            domain: Domain = DOMAIN, **settings: object,
        ) -> Grid:  # fmt: skip
            url = database_url or f"sqlite:///{folder}/services.sqlite"
            where: dict[str, object] = {"port": 0}
            if edge is not None:
                where = {"sockets": stack.enter_context(short_folder()) / "s"}
            chosen = ServicesSettings(url, folder / "secret", **where | settings)  # type: ignore[arg-type]
            chain, clock = chain or rich_chain(), Clock()
            listeners = stack.enter_context(open_listeners(chosen))
            app = await stack.enter_async_context(open_services(chosen, domain, chain, clock))
            mounted = serving_existing_clients(app, listeners.grpc, compat or CompatSettings())
            front = await stack.enter_async_context(mounted)
            await stack.enter_async_context(listening(front, listeners))
            grpc = address_of(listeners.grpc) if listeners.grpc else None
            address, authority = f"http://{address_of(listeners.http)}", None
            if edge is not None:
                assert chosen.sockets is not None
                of_nginx = stack.enter_context(short_folder())
                proxy = stack.enter_context(running_edge(of_nginx, chosen.sockets, edge, tls=tls, behind=behind))
                address, grpc, authority = proxy.url, proxy.grpc, proxy.authority
            clients = {name: client_of(address, account) for name, account in ACCOUNTS.items()}
            for client in clients.values():
                await stack.enter_async_context(client)
            return Grid(address, chain, clock, chosen, app.state.context, clients, front.compat, grpc, authority)

        yield start_one


def rich_chain() -> MemoryChain:
    """Return a chain on which the customers hold credits and the operator its role."""
    chain = MemoryChain()
    chain.balances = {ACCOUNTS["customer"].address: 10**18, ACCOUNTS["rival"].address: 10**18}
    chain.roles = {("METASCHEDULER_ROLE", ACCOUNTS["operator"].address)}
    return chain


def client_of(url: str, account: LocalAccount | Signer, **settings: float) -> ServicesClient:
    return ServicesClient(url, account, DOMAIN.chain_id, DOMAIN.verifying_contract, **settings)


def session_key(name: str = "customer", rights: Rights = "read,store", **terms: Any) -> SessionKey:
    """Return a session key of one of the wallets."""
    return SessionKey.create(ACCOUNTS[name], DOMAIN, rights, **terms)


def a_secret_job() -> Definition:
    container = ContainerRun(image="debian", registry="r.example", username="me", password=SECRET)
    return a_job().model_copy(update={"steps": (Step(run=StepRun(command="true", container=container)),)})


def a_job(command: str = "echo s3cret", *, enable_logging: bool = True) -> Definition:
    resources = "{tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}"
    logging = "true" if enable_logging else "false"
    text = f"resources: {resources}\nenableLogging: {logging}\nsteps:\n- run:\n    command: |\n      {command}\n"
    return parse(text, "job.yaml").model


async def waits(grid: Grid, job_id: int) -> bool:
    """Return whether a reader of the job's log waits at the service."""
    return grid.context.log_tails.all_followers > 0


async def push(url: str, body: bytes, headers: Headers, path: str = PATH) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(url + path, content=body, headers=headers)
