"""The customer's side: a session, and the steps of a submission.

The steps in order: read the order, check that it can be paid, store its definition, allow the credits,
request the job. Every submission gets a new location hash for its definition. The hash is also the idempotency key of
the request: a second request with the same hash finds the job of the first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from deepgrid import modules, workflow
from deepgrid.billing.credits import format_credits
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.node.values import LONGEST_NAME_BYTES, check_label_count, coded_name
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ChainError, ContractError, InputError
from deepgrid.lifecycle.job import Affinity, JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client import ServicesClient

T = TypeVar("T")

NOT_CLAIMED = "RunningScheduledStatusOnly"  # the contract's error
RECENT_JOBS = 50  # of the customer, searched for an earlier request
_AFFINITY = re.compile(r"([^<>=!:]+)(==|<=|>=|<|>|!=|=|:in:)([^<>=!:]+)")
_OPERATORS = {"=": "==", ":in:": "in"}


@dataclass(frozen=True)
class CustomerSettings:
    """A customer's configuration. Without `book`, `AddressBook.load` finds the address book."""

    key_file: Path
    book: Path | None = None
    services_url: str = ""  # empty for the URL in the address book


@dataclass(frozen=True)
class Order:
    """A job to submit, and the wei to lock for it.

    `delegate_spending` lets the grid top the job up from the customer's allowance. `warnings` has one line per
    problem in the file that does not prevent the submission.
    """

    job: workflow.Definition = field(repr=False)
    name: str
    locked_wei: int
    uses: tuple[Label, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    delegate_spending: bool = False
    warnings: tuple[str, ...] = ()

    def definition(self, location_hash: str) -> JobDefinition:
        """The part that goes on chain. The full definition is stored at `location_hash`."""
        resources = self.job.resources
        return JobDefinition(
            gpus=resources.gpus,
            mem_per_cpu_mb=resources.mem_per_cpu,
            cpus_per_task=resources.cpus_per_task,
            ntasks=resources.tasks,
            batch_location_hash=location_hash,
            uses=self.uses,
            affinity=self.affinity,
        )


def read_order(
    file: Path,
    locked_wei: int,
    *,
    name: str | None = None,
    uses: Sequence[str] = (),
    affinities: Sequence[str] = (),
    delegate_spending: bool = False,
) -> Order:
    """Read the workflow in `file` with its modules. The job has the file's name unless `name` is given.

    `uses` are texts such as `os=linux`, `affinities` such as `mem>=4000`.
    Raises InputError for any invalid argument. For a file, the error has one line per fault.
    """
    check_label_count(len(uses) + len(affinities))
    loaded = modules.load(file)
    if name is None:
        name = file.stem.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore")
    coded_name(name)
    return Order(
        job=loaded.model,
        name=name,
        locked_wei=locked_wei,
        uses=tuple(parse_use(text) for text in uses),
        affinity=tuple(parse_affinity(text) for text in affinities),
        delegate_spending=delegate_spending,
        warnings=loaded.warnings,
    )


def parse_use(text: str) -> Label:
    """The label in `key=value`. Raises InputError."""
    key, equals, value = text.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise InputError(f"{text!r} is not a label that a cluster may have.", next_step="Write it like os=linux.")
    return Label(key.strip(), value.strip())


def parse_affinity(text: str) -> Affinity:
    """The condition in `key<op>value`; op is one of < <= = == >= > != :in:. Raises InputError."""
    match = _AFFINITY.fullmatch(text)
    if match is None or not (match[1].strip() and match[3].strip()):
        raise InputError(
            f"{text!r} is not a condition on a label.",
            next_step="Write it like mem>=4000 or gpu:in:nvidia, with one of < <= = == >= > != :in:.",
        )
    return Affinity(match[1].strip(), _OPERATORS.get(match[2], match[2]), match[3].strip())


class CustomerSession:
    """The open connections of a customer's process. Open one with `customer_session`."""

    def __init__(self, chain: Chain, wallet: Wallet, services_url: str = "") -> None:
        self.chain = chain
        self.address = wallet.address
        self.sender = Sender(chain, wallet)
        self.writer = Writer(chain, self.sender)
        self.services = ServicesClient.of(chain.book, wallet.account, services_url)

    async def check(self, order: Order, *, approve: bool = True) -> None:
        """Check that the grid accepts the order now. Without `approve`, the current allowance must suffice.

        Raises InputError for too few credits, ContractError when the grid takes no jobs.
        """
        accepts, constants, balance, allowance = await asyncio.gather(
            self.chain.accepts_requests(),
            self.chain.constants(),
            self.chain.balance(self.address),
            self.chain.allowance(self.address),
        )
        if not accepts:
            raise ContractError(
                "The grid takes no new jobs at the moment.", name="NewJobRequestDisabled", next_step="Try again later."
            )
        if order.locked_wei < constants.minimum_wei:
            locked, minimum = format_credits(order.locked_wei), format_credits(constants.minimum_wei)
            raise InputError(f"{locked} credits are too few.", next_step=f"Lock at least {minimum}.")
        self._check_purse(order.locked_wei, balance, allowance if not approve else None)

    async def store(self, order: Order) -> str:
        """Store the definition so that only its job's provider can fetch it. Returns its location hash."""
        return await self.services.upload(order.job)

    async def allow(self, order: Order) -> None:
        """Set the allowance to exactly the order's credits, unless it is high enough already."""
        if await self.chain.allowance(self.address) < order.locked_wei:
            await self.writer.approve(order.locked_wei)

    async def request(self, order: Order, location_hash: str, *, approve: bool = True) -> int:
        """Request the job and lock its credits; returns its id.

        With `approve`, an allowance that is too low is set first, to exactly the locked credits. It is set back when
        the request reverts.
        """
        earlier = await self.find(location_hash)
        if earlier is not None:
            return earlier
        return await self._locking(
            order.locked_wei, lambda first: self._request(order, location_hash, approve_first=first), approve=approve
        )

    async def top_up(self, job_id: int, amount_wei: int, *, approve: bool = True) -> Receipt:
        """Lock `amount_wei` more for a claimed job of any customer.

        The allowance is handled as in `request`. Raises NotFound, ContractError for a job that no provider has claimed
        or that is over, InputError for too few credits.
        """
        if not amount_wei:
            raise InputError("The amount to add is 0.", next_step="Name an amount above 0.")
        job, balance, allowance = await asyncio.gather(
            self.chain.job(job_id), self.chain.balance(self.address), self.chain.allowance(self.address)
        )
        if job.status.cold:
            raise ContractError(f"Job {job_id} is over: it is {job.status.words}.", name=NOT_CLAIMED)
        if job.status < JobStatus.SCHEDULED:
            raise ContractError(
                f"Job {job_id} is {job.status.words}: no cluster has claimed it.", name=NOT_CLAIMED,
                next_step="Wait until one has, then top it up.",
            )  # fmt: skip
        self._check_purse(amount_wei, balance, allowance if not approve else None)
        return await self._locking(
            amount_wei, lambda first: self.writer.top_up(job_id, amount_wei, approve_first=first), approve=approve
        )

    async def find(self, location_hash: str) -> int | None:
        """The customer's job with this definition, among the newest jobs."""
        newest = (await self.chain.jobs_by_customer(self.address))[-RECENT_JOBS:]
        jobs = await self.chain.jobs(newest)
        return next((job.id for job in jobs if job.definition.batch_location_hash == location_hash), None)

    def _check_purse(self, amount_wei: int, balance: int, allowance: int | None) -> None:
        """Raise InputError when `amount_wei` cannot be locked. An `allowance` of None can be raised as needed."""
        locked = format_credits(amount_wei)
        if amount_wei > balance:
            raise InputError(
                f"{locked} credits are needed; {self.address} has {format_credits(balance)}.",
                next_step="Lock fewer, or get more credits.",
            )
        if allowance is not None and amount_wei > allowance:
            raise InputError(
                f"The allowance is {format_credits(allowance)} credits; {locked} are needed, and --no-approve keeps it"
                " unchanged.",
                next_step=f"Run `dps allowance set {locked}`, or omit --no-approve.",
            )

    async def _locking(self, amount_wei: int, send: Callable[[int | None], Awaitable[T]], *, approve: bool) -> T:
        """Send the transaction that locks `amount_wei`. `send` gets the allowance to set first, or None to keep it.

        With `approve`, an allowance that is too low is set to exactly that amount, and set back on a revert.
        """
        allowance = await self.chain.allowance(self.address)
        short = approve and allowance < amount_wei
        try:
            return await send(amount_wei if short else None)
        except ContractError as error:
            if short:
                await self.writer.approve(allowance)
            elif approve and error.name == "ERC20InsufficientAllowance":  # another submission has used it up
                return await send(amount_wei)
            raise

    async def _request(self, order: Order, location_hash: str, *, approve_first: int | None) -> int:
        try:
            return await self.writer.request_job(
                order.definition(location_hash), order.locked_wei, order.name, order.delegate_spending,
                approve_first=approve_first,
            )  # fmt: skip
        except ChainError as error:
            if not error.transient:
                raise
            raise ChainError(
                f"{error.message} The request may have been sent.",
                transient=False, next_step="Look at `dps job list` before you submit again.",
            ) from None  # fmt: skip


@asynccontextmanager
async def customer_session(settings: CustomerSettings) -> AsyncIterator[CustomerSession]:
    """Open the connections that a customer needs, and close them at the end.

    Raises ConfigurationError for an invalid key, address book or chain, ChainError when the node does not answer.
    """
    wallet = Wallet.load(settings.key_file)
    async with await Chain.connect(AddressBook.load(settings.book)) as chain:
        session = CustomerSession(chain, wallet, settings.services_url)
        try:
            async with session.services:
                yield session
        finally:
            await session.sender.close()
